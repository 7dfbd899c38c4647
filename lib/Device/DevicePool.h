// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Several devices of one kind as one device: each request goes to one that is
// free, and waits while none is.
//
// A device that fails a request has to prove its health. One that cannot is
// given up for good, with a remark, and its request goes to another; only where
// none is left is that an error. A request that fails on two healthy devices
// fails.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_DEVICE_DEVICEPOOL_H
#define FSR_LIB_DEVICE_DEVICEPOOL_H

#include "fsr/Device/Device.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <condition_variable>
#include <mutex>

namespace fsr {

class DevicePool final : public Device {
public:
  struct Opened {
    std::string name; ///< As its user gave it.
    std::unique_ptr<Device> device;
  };

  /// `remarks`: what there is to be said already. Errors (BadInput): two that
  /// are not alike, or are one and the same GPU.
  static llvm::Expected<std::unique_ptr<Device>>
  create(std::vector<Opened> devices, std::vector<std::string> remarks);

  unsigned slots() const override;
  std::vector<std::string> takeRemarks() override;
  llvm::Expected<DeviceDescription> describe() override { return description; }
  llvm::Error probe() override;
  llvm::Expected<EvaluateResult>
  evaluate(const EvaluateRequest &request) override;
  llvm::Expected<std::vector<DummyResult>>
  testStrength(const StrengthRequest &request) override;

private:
  struct Member : Opened {
    bool isBusy = false;
    bool isGivenUp = false;
  };

  DevicePool(std::vector<Opened> devices, std::vector<std::string> remarks,
             DeviceDescription description);
  /// Waits until one that is `wanted` is free; null where none is left.
  Member *acquire(llvm::function_ref<bool(const Member &)> wanted);
  void release(Member &member);
  /// Of a member that was acquired.
  void giveUp(Member &member, llvm::Error why);
  // Under the mutex:
  unsigned countLeft() const;
  llvm::Error noneLeft() const;

  template <typename Answer>
  llvm::Expected<Answer>
  serve(llvm::function_ref<llvm::Expected<Answer>(Device &)> ask);

  const DeviceDescription description;
  mutable std::mutex mutex;
  std::condition_variable freed;
  /// None comes or goes; what is in them is under the mutex, but for the device
  /// of one that is busy.
  std::vector<Member> members;
  std::vector<std::string> remarks;
  std::string givenUp; ///< All those and why, for the error in the end.
};

} // namespace fsr

#endif // FSR_LIB_DEVICE_DEVICEPOOL_H
