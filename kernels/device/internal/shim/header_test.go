//go:build linux && cgo

package shim

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The shim writes PJRT's offsets down as numbers, because another module's header cannot be included. This compares
// them with the header that go-xla was built with.
func TestOffsetsMatchTheHeader(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/gomlx/go-xla").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	include := filepath.Join(strings.TrimSpace(string(out)), "pkg", "pjrt")
	if _, err := os.Stat(filepath.Join(include, "pjrt_c_api.h")); err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	const source = `
#include <stddef.h>
#include <assert.h>
#include "pjrt_c_api.h"
#include "shim.h"
#define SAME(a, b) static_assert((a) == (b), #a)
SAME(PJRT_API_MINOR, 83);
SAME(offsetof(PJRT_Api, pjrt_api_version) + offsetof(PJRT_Api_Version, major_version), SHIM_VERSION_MAJOR_OFFSET);
SAME(offsetof(PJRT_Api, pjrt_api_version) + offsetof(PJRT_Api_Version, minor_version), SHIM_VERSION_MINOR_OFFSET);
SAME(offsetof(PJRT_Api, PJRT_LoadedExecutable_Execute), SHIM_EXECUTE_OFFSET);
SAME(offsetof(PJRT_Api, PJRT_Executable_GetCompiledMemoryStats), SHIM_MEMORY_STATS_OFFSET);
SAME(offsetof(PJRT_Api, PJRT_Error_Destroy), SHIM_ERROR_DESTROY_OFFSET);
SAME(offsetof(PJRT_Api, PJRT_Client_Create), SHIM_CLIENT_CREATE_OFFSET);
SAME(offsetof(PJRT_Api, PJRT_Client_Compile), SHIM_COMPILE_OFFSET);
SAME(offsetof(PJRT_Api, PJRT_Executable_Destroy), SHIM_EXECUTABLE_DESTROY_OFFSET);
SAME(offsetof(PJRT_Api, PJRT_Executable_Serialize), SHIM_SERIALIZE_OFFSET);
SAME(offsetof(PJRT_Api, PJRT_LoadedExecutable_GetExecutable), SHIM_GET_EXECUTABLE_OFFSET);
SAME(offsetof(PJRT_Api, PJRT_Executable_DeserializeAndLoad), SHIM_DESERIALIZE_OFFSET);
SAME(offsetof(PJRT_Client_Compile_Args, client), offsetof(shim_compile_args, client));
SAME(offsetof(PJRT_Client_Compile_Args, program), offsetof(shim_compile_args, program));
SAME(offsetof(PJRT_Client_Compile_Args, compile_options), offsetof(shim_compile_args, options));
SAME(offsetof(PJRT_Client_Compile_Args, compile_options_size), offsetof(shim_compile_args, options_size));
SAME(offsetof(PJRT_Client_Compile_Args, executable), offsetof(shim_compile_args, executable));
SAME(PJRT_Program_STRUCT_SIZE, sizeof(shim_program));
SAME(offsetof(PJRT_Program, code), offsetof(shim_program, code));
SAME(offsetof(PJRT_Program, code_size), offsetof(shim_program, code_size));
SAME(offsetof(PJRT_Program, format), offsetof(shim_program, format));
SAME(offsetof(PJRT_Program, format_size), offsetof(shim_program, format_size));
SAME(PJRT_Executable_GetCompiledMemoryStats_Args_STRUCT_SIZE, SHIM_MEMORY_STATS_SIZE);
SAME(PJRT_ExecuteOptions_STRUCT_SIZE, SHIM_EXECUTE_OPTIONS_SIZE);
SAME(PJRT_LoadedExecutable_Execute_Args_STRUCT_SIZE, SHIM_EXECUTE_ARGS_SIZE);
SAME(offsetof(PJRT_LoadedExecutable_Execute_Args, options), SHIM_EXECUTE_ARGS_OPTIONS_OFFSET);
SAME(offsetof(PJRT_ExecuteOptions, struct_size), 0);
static_assert(PJRT_ExecuteOptions_STRUCT_SIZE < SHIM_PADDED, "room to grow");
`
	cmd := exec.Command("cc", "-std=c11", "-fsyntax-only", "-I", include, "-I", here, "-x", "c", "-")
	cmd.Stdin = strings.NewReader(source)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("shim.h does not match go-xla's header:\n%s", out)
	}
}
