// Ends this process when its parent is killed, also during work without a break, in which it would not notice its
// closed pipe. Needs Linux and FFI; without them the process notices the closed pipe at its next turn.
import { dlopen, FFIType } from 'bun:ffi'

const PR_SET_PDEATHSIG = 1
const SIGKILL = 9

/** False means that the parent has ended already. */
export function endWithParent(): boolean {
  const parent = process.ppid
  try {
    const libc = dlopen('libc.so.6', { prctl: { args: [FFIType.i32, FFIType.u64], returns: FFIType.i32 } })
    libc.symbols.prctl(PR_SET_PDEATHSIG, BigInt(SIGKILL))
    libc.close()
  } catch {} // it is told by its pipe
  return process.ppid === parent
}
