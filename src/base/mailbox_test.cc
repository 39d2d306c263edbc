#include "base/mailbox.h"

#include <gtest/gtest.h>

#include <thread>

namespace whippet {
namespace {

TEST(Mailbox, DeliversEverythingInOrderOfEachSender) {
  Mailbox<std::pair<int, int>> mailbox;
  std::vector<std::thread> senders;
  for (int sender = 0; sender < 3; ++sender) {
    senders.emplace_back([&mailbox, sender] {
      std::vector<std::pair<int, int>> batch;
      for (int i = 0; i < 1000; ++i) {
        if (i % 3 == 0) {
          mailbox.push_all(batch);
          EXPECT_TRUE(batch.empty());
          mailbox.push({sender, i});
        } else {
          batch.emplace_back(sender, i);
        }
      }
      mailbox.push_all(batch);
    });
  }
  int next[3] = {};
  std::vector<std::pair<int, int>> batch;
  for (int received = 0; received < 3000;) {
    ASSERT_TRUE(mailbox.take(batch));
    for (const auto& [sender, i] : batch) EXPECT_EQ(i, next[sender]++);
    received += static_cast<int>(batch.size());
  }
  for (std::thread& sender : senders) sender.join();
}

TEST(Mailbox, APastTimeDoesNotWait) {
  Mailbox<int> mailbox;
  std::vector<int> batch = {5};
  EXPECT_TRUE(mailbox.take(batch, Mailbox<int>::Time{}));
  EXPECT_TRUE(batch.empty());
}

TEST(Mailbox, CloseWakesTheTakerOnceAllIsTaken) {
  Mailbox<int> mailbox;
  std::vector<int> batch;
  std::thread taker([&] {
    while (mailbox.take(batch)) {
    }
  });
  mailbox.push(1);
  mailbox.close();
  taker.join();
  EXPECT_FALSE(mailbox.push(2));
  EXPECT_FALSE(mailbox.take(batch));
  EXPECT_TRUE(batch.empty());
}

}  // namespace
}  // namespace whippet
