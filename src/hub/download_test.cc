#include "hub/download.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include "hub/fake_hub.h"
#include "hub/file_lock.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct DownloadTest : testing::Test {
  HubTestFolder folder;
  HubConfig config = test_config(folder.path());
  const std::string content = noise(3 << 20);
  const fs::path target = folder.path() / "blobs" / "file";
  const fs::path partial = folder.path() / "blobs" / "file.incomplete";

  Download download(const std::string& url) const {
    Download out;
    out.url = url + "/file";
    out.target = target;
    out.name = "file";
    out.size = content.size();
    out.sha256 = sha256_of(content);
    return out;
  }
  Status fetch(const Download& what) {
    HttpClient client(config);
    return download_file(client, what, config);
  }
  void expect_whole() const {
    EXPECT_TRUE(read_file(target) == content);
    EXPECT_FALSE(fs::exists(partial));
  }
};

TEST_F(DownloadTest, FetchesChecksAndRenames) {
  FakeServer server([&](const FakeRequest& request) { return serve_file(request, content); });
  const Status status = fetch(download(server.url()));
  ASSERT_TRUE(status.ok()) << status.error().message;
  expect_whole();
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST_F(DownloadTest, ResumesAfterABrokenConnection) {
  int calls = 0;
  FakeServer server([&](const FakeRequest& request) {
    FakeResponse response = serve_file(request, content);
    if (++calls <= 2) response.cut_after = 1 << 20;
    return response;
  });
  ASSERT_TRUE(fetch(download(server.url())).ok());
  expect_whole();
  EXPECT_EQ(server.requests().at(1).header("range"), "bytes=1048576-");
  EXPECT_EQ(server.requests().at(2).header("range"), "bytes=2097152-");
}

TEST_F(DownloadTest, StartsAnewWhereTheServerKnowsNoRanges) {
  int calls = 0;
  FakeServer server([&](const FakeRequest& request) {
    FakeResponse response = serve_file(request, content, false);
    if (++calls == 1) response.cut_after = 1 << 20;
    return response;
  });
  ASSERT_TRUE(fetch(download(server.url())).ok());
  expect_whole();
}

TEST_F(DownloadTest, AServerThatAlwaysBreaksIsGivenUp) {
  FakeServer server([&](const FakeRequest& request) {
    FakeResponse response = serve_file(request, content, false);
    response.cut_after = 2 << 20;
    return response;
  });
  EXPECT_EQ(fetch(download(server.url())).error().code, Code::kUnavailable);
  EXPECT_LE(server.requests().size(), static_cast<size_t>(config.max_attempts) + 1);
  EXPECT_FALSE(fs::exists(target));
}

TEST_F(DownloadTest, ALaterRunResumesWhatAnEarlierOneLeft) {
  write_file(partial, content.substr(0, 100'000));
  FakeServer server([&](const FakeRequest& request) { return serve_file(request, content); });
  ASSERT_TRUE(fetch(download(server.url())).ok());
  expect_whole();
  EXPECT_EQ(server.requests().at(0).header("range"), "bytes=100000-");
}

TEST_F(DownloadTest, AWholePartialFileNeedsNoRequest) {
  write_file(partial, content);
  FakeServer server([&](const FakeRequest& request) { return serve_file(request, content); });
  ASSERT_TRUE(fetch(download(server.url())).ok());
  expect_whole();
  EXPECT_EQ(server.requests().size(), 0u);
}

TEST_F(DownloadTest, ADamagedPartialFileIsFetchedAnew) {
  for (const std::string& left :
       {noise(100'000, 7), noise(content.size(), 8), noise(content.size() + 5, 9)}) {
    fs::remove(target);
    write_file(partial, left);
    FakeServer server([&](const FakeRequest& request) { return serve_file(request, content); });
    const Status status = fetch(download(server.url()));
    ASSERT_TRUE(status.ok()) << status.error().message;
    expect_whole();
  }
}

TEST_F(DownloadTest, AWrongChecksumLeavesNothing) {
  FakeServer server(
      [&](const FakeRequest& request) { return serve_file(request, noise(content.size(), 5)); });
  const Status status = fetch(download(server.url()));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kCorrupt);
  EXPECT_THAT(status.error().message, HasSubstr(sha256_of(content)));
  EXPECT_FALSE(fs::exists(target));
  EXPECT_FALSE(fs::exists(partial));
}

TEST_F(DownloadTest, AGitChecksumIsHeldToo) {
  FakeServer server([&](const FakeRequest& request) { return serve_file(request, content); });
  Download git = download(server.url());
  git.sha256.clear();
  git.git_sha1 = git_sha1_of(content);
  ASSERT_TRUE(fetch(git).ok());
  fs::remove(target);
  git.size.reset();  // learned from Content-Length
  ASSERT_TRUE(fetch(git).ok());
  fs::remove(target);
  git.git_sha1 = git_sha1_of("other");
  EXPECT_EQ(fetch(git).error().code, Code::kCorrupt);
  FakeServer unsized([&](const FakeRequest&) {
    FakeResponse response{200, content};
    response.no_length = true;
    return response;
  });
  git.url = unsized.url();
  EXPECT_EQ(fetch(git).error().code, Code::kCorrupt);
  git.git_sha1 = git_sha1_of(content);  // judged at the end
  ASSERT_TRUE(fetch(git).ok());
}

TEST_F(DownloadTest, AWrongSizeIsNamedBeforeAnythingIsWritten) {
  for (const size_t size : {content.size() - 1, content.size() + 1}) {
    FakeServer server([&](const FakeRequest& request) { return serve_file(request, noise(size)); });
    const Status status = fetch(download(server.url()));
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::kCorrupt);
    EXPECT_THAT(status.error().message, HasSubstr(std::to_string(size)));
    EXPECT_FALSE(fs::exists(target));
  }
}

TEST_F(DownloadTest, ABodyLongerThanAnnouncedIsCutOff) {
  FakeServer server([&](const FakeRequest&) {
    FakeResponse response{200, content + "more"};
    response.no_length = true;
    return response;
  });
  EXPECT_EQ(fetch(download(server.url())).error().code, Code::kCorrupt);
  Download endless = download(server.url());
  endless.size.reset();
  endless.sha256.clear();
  const std::string huge((64u << 20) + 1, 'x');
  FakeServer flood([&](const FakeRequest&) {
    FakeResponse response{200, huge};
    response.no_length = true;
    return response;
  });
  endless.url = flood.url();
  EXPECT_THAT(fetch(endless).error().message, HasSubstr("without a size and without a checksum"));
  EXPECT_FALSE(fs::exists(target));
  endless.sha256 = sha256_of(huge);
  EXPECT_THAT(fetch(endless).error().message, HasSubstr("sends more than"));
  EXPECT_FALSE(fs::exists(target));
}

TEST_F(DownloadTest, ARangeFromElsewhereIsRefused) {
  write_file(partial, content.substr(0, 1000));
  FakeServer server([&](const FakeRequest&) {
    return FakeResponse{
        206,
        content.substr(500),
        {{"Content-Range", fmt::format("bytes 500-{}/{}", content.size() - 1, content.size())}}};
  });
  EXPECT_EQ(fetch(download(server.url())).error().code, Code::kCorrupt);
  EXPECT_FALSE(fs::exists(target));
}

TEST_F(DownloadTest, StatusesThatHealAreTriedAgainOthersAreExplained) {
  int calls = 0;
  FakeServer server([&](const FakeRequest& request) {
    ++calls;
    return calls == 1   ? FakeResponse{500, ""}
           : calls == 2 ? FakeResponse{429, ""}
                        : serve_file(request, content);
  });
  ASSERT_TRUE(fetch(download(server.url())).ok());
  expect_whole();
  FakeServer missing([](const FakeRequest&) { return FakeResponse{404, "gone"}; });
  Download what = download(missing.url());
  what.explain = [](const HttpResponse& r) {
    return make_error(Code::kNotFound, "explained {} {}", r.status, r.body);
  };
  EXPECT_EQ(fetch(what).error().message, "explained 404 gone");
  EXPECT_EQ(missing.requests().size(), 1u);
}

TEST_F(DownloadTest, AServerThatAlwaysAnswers416EndsToo) {
  write_file(partial, content.substr(0, 1000));
  FakeServer server([&](const FakeRequest&) { return FakeResponse{416, ""}; });
  EXPECT_FALSE(fetch(download(server.url())).ok());
}

TEST_F(DownloadTest, TooLittleDiskIsSaidBeforeTheRequest) {
  config.free_bytes = [](const fs::path&) { return uint64_t{1} << 20; };
  FakeServer server([&](const FakeRequest& request) { return serve_file(request, content); });
  const Status status = fetch(download(server.url()));
  EXPECT_EQ(status.error().code, Code::kResourceExhausted);
  EXPECT_THAT(status.error().message, HasSubstr("3.0 MiB are needed, 1.0 MiB are free"));
  EXPECT_EQ(server.requests().size(), 0u);
}

TEST_F(DownloadTest, ADiskThatFillsUpIsAnErrorThatCanBeResumed) {
  FakeServer server([&](const FakeRequest& request) { return serve_file(request, content); });
  const auto previous = ::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1 << 20;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = fetch(download(server.url()));
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, previous);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kResourceExhausted);
  EXPECT_FALSE(fs::exists(target));
  EXPECT_GT(fs::file_size(partial), 0u);
  ASSERT_TRUE(fetch(download(server.url())).ok());
  expect_whole();
}

TEST_F(DownloadTest, ACancelKeepsThePartForLater) {
  std::atomic<bool> cancelled{false};
  config.cancelled = &cancelled;
  int calls = 0;
  FakeServer server([&](const FakeRequest& request) {
    FakeResponse response = serve_file(request, content);
    if (++calls == 1) {
      response.cut_after = 1 << 20;
      cancelled = true;
    }
    return response;
  });
  EXPECT_EQ(fetch(download(server.url())).error().code, Code::kCancelled);
  EXPECT_FALSE(fs::exists(target));
  cancelled = false;
  ASSERT_TRUE(fetch(download(server.url())).ok());
  expect_whole();
}

TEST_F(DownloadTest, AnEmptyFileIsAFile) {
  FakeServer server([&](const FakeRequest&) { return FakeResponse{200, ""}; });
  Download empty = download(server.url());
  empty.size = 0;
  empty.sha256 = sha256_of("");
  ASSERT_TRUE(fetch(empty).ok());
  EXPECT_EQ(fs::file_size(target), 0u);
}

TEST(FileLock, ASecondHolderWaitsForTheFirst) {
  const HubTestFolder folder;
  const HubConfig config = test_config(folder.path());
  const fs::path path = folder.path() / "locks" / "a.lock";
  std::atomic<bool> inside{false}, overlapped{false};
  const auto hold = [&] {
    for (int i = 0; i < 20; ++i) {
      const auto lock = FileLock::acquire(path, "a", config);
      if (!lock.ok() || inside.exchange(true)) overlapped = true;
      std::this_thread::yield();
      inside = false;
    }
  };
  std::thread other(hold);
  hold();
  other.join();
  EXPECT_FALSE(overlapped);
}

TEST(FileLock, AWaitCanBeCancelled) {
  const HubTestFolder folder;
  HubConfig config = test_config(folder.path());
  const auto first = FileLock::acquire(folder.path() / "a.lock", "a", config);
  ASSERT_TRUE(first.ok());
  const std::atomic<bool> cancelled{true};
  config.cancelled = &cancelled;
  EXPECT_EQ(FileLock::acquire(folder.path() / "a.lock", "a", config).error().code, Code::kCancelled);
}

}  // namespace
}  // namespace whippet
