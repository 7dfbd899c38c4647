# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# How the lit tests run. Tools are found by name: FSR's own, then LLVM's. What a
# machine may lack is a feature that a test has to REQUIRE:
#   cuda-toolkit  ptxas and NVRTC, found as FSR itself finds them
#   cuda-device   a GPU; overruled by --param=cuda_device=0 or 1
#   mlir-tools    mlir-opt and mlir-translate of LLVM 22
#   default-build  the build folder is the one that tools/dev/try uses
#   local-model   what tools/dev/local-model installs, found where it puts it
#   jsonschema    the Python package, of the Python that runs lit (Debian:
#                 python3-jsonschema)
#   shellcheck, clang-format  the programs
#   openssh-server  sshd, ssh and ssh-keygen (Debian: openssh-server)
#   slurm         slurmctld, slurmd, srun and munged (Debian: slurmctld, slurmd,
#                 slurm-client, munge), and root, which they want
# pylint: disable=undefined-variable
import glob
import os
import shutil
import subprocess
import sys

import lit.formats

config.name = "FSR"
# bash: lit's own shell has neither loops nor ${name%suffix}.
config.test_format = lit.formats.ShTest(execute_external=True)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "Unit"]
config.test_source_root = os.path.dirname(os.path.abspath(__file__))
config.test_exec_root = os.path.join(config.fsr_obj_root, "test")

environment = config.environment
environment["PATH"] = os.pathsep.join(
    [config.fsr_tools_dir, config.llvm_tools_dir, environment.get("PATH", "")]
)
# A captured variable must not leak past the next CHECK-LABEL.
environment["FILECHECK_OPTS"] = "--enable-var-scope"
environment["FSR_BUILD"] = config.fsr_obj_root
environment["FSR_CXX"] = config.cxx_compiler
# lit starts from an almost empty environment, so that no key, store or address
# of the user's gets in. What says where the toolkit is goes through.
for name in ("CUDA_PATH", "CUDA_HOME", "CUDA_ROOT"):
    if name in os.environ:
        environment[name] = os.environ[name]
# No test may reach a device by accident: %gpu in front of a command lets it.
environment["CUDA_VISIBLE_DEVICES"] = ""


def find_toolkit():
    """A toolkit with ptxas and NVRTC, by the rule of fsr::findToolkit."""
    if "CUDA_PATH" in os.environ:
        places = [os.environ["CUDA_PATH"]]
    else:
        places = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_ROOT")]
        ptxas = shutil.which("ptxas")
        if ptxas:
            places.append(os.path.dirname(os.path.dirname(os.path.realpath(ptxas))))
        places.append("/usr/local/cuda")
    for place in filter(None, places):
        nvrtc = [
            found
            for folder in ("lib64", "lib", "targets/x86_64-linux/lib")
            for found in glob.glob(os.path.join(place, folder, "libnvrtc.so*"))
        ]
        if nvrtc and os.access(os.path.join(place, "bin", "ptxas"), os.X_OK):
            return place
    return None


def has_device():
    """Whether a driver counts at least one GPU; asked in a child, since a process
    that has touched CUDA must not go on to start others."""
    asked = lit_config.params.get("cuda_device")
    if asked is not None:
        return asked not in ("0", "")
    code = (
        "import ctypes, sys; c = ctypes.CDLL('libcuda.so.1'); n = ctypes.c_int(0); "
        "sys.exit(0 if c.cuInit(0) == 0 and c.cuDeviceGetCount(ctypes.byref(n)) == 0"
        " and n.value > 0 else 1)"
    )
    try:
        return (
            subprocess.run(
                [sys.executable, "-c", code],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=60,
                check=False,
            ).returncode
            == 0
        )
    except (OSError, subprocess.TimeoutExpired):
        return False


def find_local_model():
    """The folder of tools/dev/local-model, or nothing where it has not been run."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = os.environ.get("FSR_LOCAL_MODEL") or os.path.join(
        cache, "fsr", "local-model"
    )
    needed = ("ready", "model.gguf", "venv/bin/python")
    if all(os.path.exists(os.path.join(folder, name)) for name in needed):
        return folder
    return ""


local_model = find_local_model()
if local_model:
    config.available_features.add("local-model")
if find_toolkit():
    config.available_features.add("cuda-toolkit")
if has_device():
    config.available_features.add("cuda-device")
if all(
    shutil.which(tool, path=environment["PATH"])
    for tool in ("mlir-opt", "mlir-translate")
):
    config.available_features.add("mlir-tools")
# tools/dev/try builds in the folder `build`.
if os.path.realpath(config.fsr_obj_root) == os.path.realpath(
    os.path.join(config.fsr_src_root, "build")
):
    config.available_features.add("default-build")
if shutil.which("shellcheck"):
    config.available_features.add("shellcheck")
if shutil.which("clang-format-22"):
    config.available_features.add("clang-format")


def all_found(*names):
    """Whether there are programs of these names, daemons included."""
    path = os.pathsep.join([environment["PATH"], "/usr/sbin", "/usr/local/sbin"])
    return all(shutil.which(name, path=path) for name in names)


if all_found("sshd", "ssh", "ssh-keygen"):
    config.available_features.add("openssh-server")
if all_found("slurmctld", "slurmd", "srun", "munged") and os.getuid() == 0:
    config.available_features.add("slurm")

try:
    from jsonschema import Draft202012Validator  # pylint: disable=unused-import

    config.available_features.add("jsonschema")
except ImportError:
    pass

runner_libraries = ",".join(
    [
        os.path.join(config.fsr_lib_dir, "libfsr_gpu_runtime.so"),
        os.path.join(config.llvm_lib_dir, "libmlir_c_runner_utils.so"),
        os.path.join(config.llvm_lib_dir, "libmlir_runner_utils.so"),
    ]
)
for name, value in (
    ("%fsr_opt", os.path.join(config.fsr_tools_dir, "fsr-opt")),
    ("%fsr_worker", os.path.join(config.fsr_tools_dir, "fsr-worker")),
    ("%fsr_tune", os.path.join(config.fsr_tools_dir, "fsr-tune")),
    ("%fsr_store", os.path.join(config.fsr_tools_dir, "fsr-store")),
    ("%fsr_plugin", os.path.join(config.fsr_lib_dir, "FSRPlugin.so")),
    ("%fsr_runtime", os.path.join(config.fsr_lib_dir, "libfsr_gpu_runtime.so")),
    ("%runner_libs", runner_libraries),
    ("%llvm_lib", config.llvm_lib_dir),
    ("%fsr_src", config.fsr_src_root),
    ("%fsr_bin", config.fsr_tools_dir),
    ("%fsr_obj", config.fsr_obj_root),
    ("%cxx", config.cxx_compiler),
    ("%kernels", os.path.join(config.fsr_src_root, "benchmarks", "kernels")),
    ("%dev", os.path.join(config.fsr_src_root, "tools", "dev")),
    ("%python", sys.executable),
    ("%local_model", local_model),
    ("%gpu", "env -u CUDA_VISIBLE_DEVICES"),
):
    config.substitutions.append((name + r"\b", value.replace("\\", r"\\")))
