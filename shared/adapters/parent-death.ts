// A child that ends when its parent was killed, also in the midst of work without a break, where it would not notice that its pipe was closed. Linux alone; elsewhere, and where there is
// no FFI, it notices at its next turn.
import { dlopen, FFIType } from 'bun:ffi'

const PR_SET_PDEATHSIG = 1
const SIGKILL = 9

/** False: it has ended already. */
export function endWithParent(): boolean {
  const parent = process.ppid
  try {
    const libc = dlopen('libc.so.6', { prctl: { args: [FFIType.i32, FFIType.u64], returns: FFIType.i32 } })
    libc.symbols.prctl(PR_SET_PDEATHSIG, BigInt(SIGKILL))
    libc.close()
  } catch {} // it is told by its pipe
  return process.ppid === parent
}
