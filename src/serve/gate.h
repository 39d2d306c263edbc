// Whether a request may come in: the server's life (loading, ready, draining) and how many answers are
// inside. Lock-free; any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace whippet::serve {

class Gate {
 public:
  enum class Life : uint8_t { kLoading, kReady, kDraining };
  enum class Verdict : uint8_t { kOpen, kLoading, kDraining, kFull };

  // Holds the places of one request's answers until it is destroyed.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Gate& gate, int32_t answers) : gate_(&gate), answers_(answers) {}
    Ticket(Ticket&& other) noexcept
        : gate_(std::exchange(other.gate_, nullptr)), answers_(std::exchange(other.answers_, 0)) {}
    Ticket& operator=(Ticket&& other) noexcept {
      std::swap(gate_, other.gate_);
      std::swap(answers_, other.answers_);
      return *this;
    }
    ~Ticket() {
      if (gate_ != nullptr) gate_->leave(answers_);
    }

   private:
    Gate* gate_ = nullptr;
    int32_t answers_ = 0;
  };

  // max_inside: answers that run and wait; 0: no limit.
  void open(int32_t max_inside) {
    max_inside_ = max_inside;
    auto expected = Life::kLoading;
    life_.compare_exchange_strong(expected, Life::kReady);
  }
  void drain() { life_ = Life::kDraining; }
  Life life() const { return life_; }

  // What would be said to one answer more.
  Verdict verdict() const {
    const Life life = life_;
    if (life == Life::kLoading) return Verdict::kLoading;
    if (life == Life::kDraining) return Verdict::kDraining;
    return max_inside_ > 0 && inside_ >= max_inside_ ? Verdict::kFull : Verdict::kOpen;
  }
  // Takes the places, whole or not at all: a request of many answers may go over the limit by them.
  Verdict enter(int32_t answers, Ticket& ticket) {
    const Verdict said = verdict();
    if (said != Verdict::kOpen) return said;
    inside_ += answers;
    ++requests_;
    ticket = Ticket(*this, answers);
    return said;
  }

  int32_t inside() const { return inside_; }      // answers
  int32_t requests() const { return requests_; }  // that hold a ticket
  uint64_t left() const { return left_; }         // requests since the start

 private:
  void leave(int32_t answers) {
    inside_ -= answers;
    --requests_;
    ++left_;
  }

  std::atomic<Life> life_ = Life::kLoading;
  std::atomic<int32_t> max_inside_ = 0;
  std::atomic<int32_t> inside_ = 0, requests_ = 0;
  std::atomic<uint64_t> left_ = 0;
};

}  // namespace whippet::serve
