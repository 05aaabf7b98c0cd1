// Memory of server, workers and agent holds secrets while they work: a crash must not write it to a disk, nor hand it
// to a collector of crashes.
import { dlopen, FFIType, ptr } from 'bun:ffi'

const LIBRARIES: Partial<Record<NodeJS.Platform, string>> = { linux: 'libc.so.6', darwin: 'libSystem.B.dylib' }
const RLIMIT_CORE = 4

/** From now on, also for programs that this process starts. False: the system does not allow it. */
export function disableCoreDumps(): boolean {
  const library = LIBRARIES[process.platform]
  if (library === undefined) return false
  try {
    const libc = dlopen(library, { setrlimit: { args: [FFIType.i32, FFIType.ptr], returns: FFIType.i32 } })
    const none = new BigUint64Array(2)
    const code = libc.symbols.setrlimit(RLIMIT_CORE, ptr(none))
    libc.close()
    return code === 0
  } catch {
    return false
  }
}
