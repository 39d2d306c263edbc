// Who is let in, what is told to the log, and the line that says how the engine does.
#include "serve/gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/http_message.h"
#include "serve/ignored_fields.h"
#include "serve/request_id.h"
#include "serve/watch.h"

namespace whippet::serve {
namespace {

using testing::HasSubstr;
using Verdict = Gate::Verdict;

TEST(Gate, CountsAnswersAndGivesTheirPlacesBack) {
  Gate gate;
  Gate::Ticket ticket;
  EXPECT_EQ(gate.enter(1, ticket), Verdict::kLoading);
  gate.open(3);
  EXPECT_EQ(gate.enter(2, ticket), Verdict::kOpen);
  {
    Gate::Ticket other;
    EXPECT_EQ(gate.enter(4, other), Verdict::kOpen);  // whole, though it is more than is left
    EXPECT_EQ(gate.inside(), 6);
    EXPECT_EQ(gate.requests(), 2);
    Gate::Ticket third;
    EXPECT_EQ(gate.enter(1, third), Verdict::kFull);
    EXPECT_EQ(gate.inside(), 6);
  }
  EXPECT_EQ(gate.inside(), 2);
  EXPECT_EQ(gate.left(), 1u);
  ticket = Gate::Ticket();
  EXPECT_EQ(gate.inside(), 0);
  gate.drain();
  EXPECT_EQ(gate.enter(1, ticket), Verdict::kDraining);
  gate.open(3);
  EXPECT_EQ(gate.life(), Gate::Life::kDraining) << "a server that was told to stop while it loaded";
}

TEST(Gate, ZeroIsNoLimit) {
  Gate gate;
  gate.open(0);
  Gate::Ticket ticket;
  EXPECT_EQ(gate.enter(100000, ticket), Verdict::kOpen);
  EXPECT_EQ(gate.verdict(), Verdict::kOpen);
}

TEST(IgnoredFields, MakeAHeaderThatIsSafeAndBounded) {
  IgnoredFields fields;
  EXPECT_EQ(fields.note({}), "");
  EXPECT_EQ(fields.note({"a", "b\r\nX: y"}), "a, b??X: y");
  std::vector<std::string> many(1000, std::string(100, 'x'));
  EXPECT_LE(fields.note(many).size(), 1024u + 2);
}

TEST(RequestId, IsTheClientsOwnWhereItIsFitToBeShown) {
  EXPECT_EQ(request_id("abc-1_2.3:4"), "abc-1_2.3:4");
  for (const std::string& bad :
       {std::string(), std::string("a b"), std::string("a\"b"), std::string(129, 'a')}) {
    EXPECT_EQ(request_id(bad).size(), 32u);
    EXPECT_NE(request_id(bad), request_id(bad));
  }
}

TEST(Watch, TheStatisticsLineIsOfWhatHappenedSinceTheLast) {
  EngineCounts before, now;
  before.generation_tokens = 1000;
  now.generation_tokens = 2000;
  now.prompt_tokens = 500;
  now.prefix_queries = 400;
  now.prefix_hits = 100;
  now.running = 3;
  now.waiting = 2;
  now.kv_usage = 0.5;
  EXPECT_EQ(statistics_line(before, now, 10),
            "3 running, 2 waiting; tokens/s: 100 out, 50 in; KV cache 50 % used, prefix hits 25 %");
}

TEST(HttpMessage, WhatIsShownHasNoControlCharacters) {
  EXPECT_EQ(printable("a\n\x1b[31mb\x7f\xff", 100), "a??[31mb??");
  EXPECT_EQ(printable("abcdef", 3), "abc");
}

}  // namespace
}  // namespace whippet::serve
