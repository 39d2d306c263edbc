#include "backend/cuda/blas.h"

#include <cublasLt.h>
#include <dlfcn.h>

#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "backend/cuda/device.h"
#include "base/math.h"

namespace whippet::cuda {
namespace {

constexpr size_t kWorkspaceBytes = size_t{32} << 20;
constexpr int32_t kRowStep = 32;  // kernels are chosen for rows rounded up to this

#define WH_BLAS_FUNCTIONS(X)              \
  X(cublasLtCreate)                       \
  X(cublasLtDestroy)                      \
  X(cublasLtMatmul)                       \
  X(cublasLtMatmulAlgoGetHeuristic)       \
  X(cublasLtMatmulDescCreate)             \
  X(cublasLtMatmulDescDestroy)            \
  X(cublasLtMatmulDescSetAttribute)       \
  X(cublasLtMatmulPreferenceCreate)       \
  X(cublasLtMatmulPreferenceDestroy)      \
  X(cublasLtMatmulPreferenceSetAttribute) \
  X(cublasLtMatrixLayoutCreate)           \
  X(cublasLtMatrixLayoutDestroy)

struct Functions {
#define WH_DECLARE(name) decltype(&::name) name = nullptr;
  WH_BLAS_FUNCTIONS(WH_DECLARE)
#undef WH_DECLARE
};

cudaDataType_t data_type(DType dtype) {
  if (dtype == DType::kF16) return CUDA_R_16F;
  return dtype == DType::kBF16 ? CUDA_R_16BF : CUDA_R_32F;
}

void check(cublasStatus_t status, const char* what) {
  WH_CHECK(status == CUBLAS_STATUS_SUCCESS, "{}: cuBLASLt status {}", what, static_cast<int>(status));
}

// One product as cuBLASLt sees it: columns first, so that w^T x^T comes out as our rows.
class Problem {
 public:
  Problem(const Functions& lt, ConstMat x, ConstMat w, const void* bias, Mat out, int32_t rows) : lt_(lt) {
    check(lt.cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F), "MatmulDescCreate");
    const cublasOperation_t transposed = CUBLAS_OP_T;
    set(CUBLASLT_MATMUL_DESC_TRANSA, transposed);
    if (bias != nullptr) {
      const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
      set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    }
    layout(&a, w.dtype, x.cols, w.rows, w.stride);
    layout(&b, x.dtype, x.cols, rows, x.stride);
    layout(&d, out.dtype, w.rows, rows, out.stride);
  }
  Problem(const Problem&) = delete;
  ~Problem() {
    for (cublasLtMatrixLayout_t each : {a, b, d}) lt_.cublasLtMatrixLayoutDestroy(each);
    lt_.cublasLtMatmulDescDestroy(desc);
  }

  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;

 private:
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    check(lt_.cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof(value)),
          "MatmulDescSetAttribute");
  }
  void layout(cublasLtMatrixLayout_t* to, DType dtype, int64_t rows, int64_t cols, int64_t stride) {
    check(lt_.cublasLtMatrixLayoutCreate(to, data_type(dtype), static_cast<uint64_t>(rows),
                                         static_cast<uint64_t>(cols), stride),
          "MatrixLayoutCreate");
  }

  const Functions& lt_;
};

using Key = std::tuple<DType, DType, int32_t, int32_t, int32_t, int64_t, int64_t, int64_t, bool>;

}  // namespace

struct Blas::Impl {
  Functions lt;
  void* library = nullptr;
  cublasLtHandle_t handle = nullptr;
  Buffer workspace;
  std::map<Key, std::optional<cublasLtMatmulAlgo_t>> algorithms;

  ~Impl() {
    if (handle != nullptr) lt.cublasLtDestroy(handle);
    if (library != nullptr) dlclose(library);
  }

  std::optional<cublasLtMatmulAlgo_t> choose(ConstMat x, ConstMat w, const void* bias, Mat out) {
    const int32_t rows = align_up(x.rows, kRowStep);
    const Key key{x.dtype, out.dtype, rows, x.cols, w.rows, x.stride, w.stride, out.stride, bias != nullptr};
    if (const auto known = algorithms.find(key); known != algorithms.end()) return known->second;
    const Problem problem(lt, x, w, bias, out, rows);
    cublasLtMatmulPreference_t preference;
    check(lt.cublasLtMatmulPreferenceCreate(&preference), "MatmulPreferenceCreate");
    check(lt.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                  &kWorkspaceBytes, sizeof(kWorkspaceBytes)),
          "MatmulPreferenceSetAttribute");
    cublasLtMatmulHeuristicResult_t result;
    int found = 0;
    const cublasStatus_t status = lt.cublasLtMatmulAlgoGetHeuristic(
        handle, problem.desc, problem.a, problem.b, problem.d, problem.d, preference, 1, &result, &found);
    lt.cublasLtMatmulPreferenceDestroy(preference);
    const bool usable = status == CUBLAS_STATUS_SUCCESS && found > 0;
    return algorithms[key] = usable ? std::optional(result.algo) : std::nullopt;
  }
};

Result<std::unique_ptr<Blas>> Blas::open() {
  constexpr const char* kName = "libcublasLt.so.13";
  auto impl = std::make_unique<Impl>();
  impl->library = dlopen(kName, RTLD_NOW | RTLD_LOCAL);
  if (impl->library == nullptr)
    return make_error(Code::kUnsupported, "{} is not found ({}): install CUDA 13's cuBLAS", kName, dlerror());
#define WH_LOAD(name)                                                                     \
  impl->lt.name = reinterpret_cast<decltype(impl->lt.name)>(dlsym(impl->library, #name)); \
  if (impl->lt.name == nullptr) return make_error(Code::kUnsupported, "{} has no {}", kName, #name);
  WH_BLAS_FUNCTIONS(WH_LOAD)
#undef WH_LOAD
  const cublasStatus_t status = impl->lt.cublasLtCreate(&impl->handle);
  if (status != CUBLAS_STATUS_SUCCESS) {
    impl->handle = nullptr;
    return make_error(Code::kUnsupported, "{} does not start: status {}", kName, static_cast<int>(status));
  }
  impl->workspace = Device::allocate(kWorkspaceBytes);
  return std::unique_ptr<Blas>(new Blas(std::move(impl)));
}

Blas::Blas(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Blas::~Blas() = default;

bool Blas::product(cudaStream_t stream, ConstMat x, ConstMat w, const void* bias, Mat out) {
  const auto algorithm = impl_->choose(x, w, bias, out);
  if (!algorithm) return false;
  const Problem problem(impl_->lt, x, w, bias, out, x.rows);
  const float one = 1, zero = 0;
  const cublasStatus_t status = impl_->lt.cublasLtMatmul(
      impl_->handle, problem.desc, &one, w.data, problem.a, x.data, problem.b, &zero, out.data, problem.d,
      out.data, problem.d, &*algorithm, impl_->workspace.as<void>(), kWorkspaceBytes, stream);
  return status == CUBLAS_STATUS_SUCCESS;
}

}  // namespace whippet::cuda
