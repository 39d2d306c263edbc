// How answers get from the streamer thread to the I/O threads: once a step, the bytes of all streams in one
// buffer. Nothing is allocated for a token, and a step costs each I/O thread one lock and one wake-up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace whippet::serve {

// Which request of which connection of an I/O thread.
struct Address {
  uint32_t io_thread = 0;
  uint32_t slot = 0;      // of the connection
  uint64_t exchange = 0;  // of the request: a connection that has gone on drops what comes late
};

struct Delivery {
  Address to;
  size_t begin = 0, end = 0;  // in Deliveries::bytes
  int32_t status = 0;         // 0: bytes of a stream, framed; else a whole body with this status
  bool last = false;          // the answer is complete with it
  int32_t next = -1;          // of the same connection, when they are sorted out
};

struct Deliveries {
  std::string bytes;
  std::vector<Delivery> items;

  bool empty() const { return items.empty(); }
  void clear() {
    bytes.clear();
    items.clear();
  }
  // Moves all of `more` behind this and leaves it empty, with spare capacity where there is some.
  void take(Deliveries& more) {
    if (empty()) {
      bytes.swap(more.bytes);
      items.swap(more.items);
    } else {
      for (Delivery& item : more.items) {
        item.begin += bytes.size();
        item.end += bytes.size();
        items.push_back(item);
      }
      bytes += more.bytes;
    }
    more.clear();
  }
};

// A chunk of HTTP's chunked coding, whose length is known when it is complete: room is left for it in front.
class Chunk {
 public:
  explicit Chunk(std::string& out) : out_(out), room_(out.size()) { out.append(kRoom, ' '); }

  // Returns where the chunk begins in `out`; out.size() where it is empty, and then takes the room back.
  size_t close() {
    const size_t size = out_.size() - room_ - kRoom;
    if (size == 0) {
      out_.resize(room_);
      return room_;
    }
    out_ += "\r\n";
    size_t at = room_ + kRoom;
    out_[--at] = '\n';
    out_[--at] = '\r';
    for (size_t rest = size; rest > 0; rest >>= 4) out_[--at] = "0123456789abcdef"[rest & 15];
    return at;
  }

 private:
  static constexpr size_t kRoom = 18;  // 16 hexadecimal digits and the line's end
  std::string& out_;
  size_t room_;
};

// Deliveries that came before the connection knew of its answer.
struct EarlyDeliveries {
  std::string bytes;
  int32_t status = 0;
  bool last = false;
};

}  // namespace whippet::serve
