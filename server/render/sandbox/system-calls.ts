// System calls that a renderer does not need: they create memory that belongs to no process and therefore no limit
// counts, leave data behind for others, or have been used to break out of kernels. Sockets can be of the usual three
// families only: the others are kernel code that no render needs. As a filter for seccomp, which bubblewrap or
// confine.ts sets before it starts the program.

interface Machine {
  /** As the kernel names the architecture of a call (AUDIT_ARCH_*). */
  audit: number
  refused: Readonly<Record<string, number>>
  /** System calls whose first argument is an address family. */
  sockets: Readonly<Record<'socket' | 'socketpair', number>>
}

/** Both have those above 424 by the same number. */
const NEW_CALLS = {
  ...{ io_uring_setup: 425, io_uring_enter: 426, io_uring_register: 427 },
  ...{ open_tree: 428, move_mount: 429, fsopen: 430, fsconfig: 431, fsmount: 432, fspick: 433, mount_setattr: 442 },
  ...{ pidfd_getfd: 438, memfd_secret: 447 },
}

const MACHINES: Readonly<Record<string, Machine>> = {
  x64: {
    audit: 0xc000003e,
    refused: {
      ...{ memfd_create: 319, shmget: 29, shmat: 30, shmctl: 31, shmdt: 67, msgget: 68, msgsnd: 69, msgrcv: 70, msgctl: 71 },
      ...{ semget: 64, semop: 65, semctl: 66, semtimedop: 220, mq_open: 240, add_key: 248, request_key: 249, keyctl: 250 },
      ...{ ptrace: 101, process_vm_readv: 310, process_vm_writev: 311, bpf: 321, perf_event_open: 298, userfaultfd: 323 },
      ...{ mount: 165, umount2: 166, pivot_root: 155, unshare: 272, setns: 308, name_to_handle_at: 303, open_by_handle_at: 304 },
      ...{ init_module: 175, finit_module: 313, kexec_load: 246, kexec_file_load: 320, syslog: 103, fanotify_init: 300 },
      ...NEW_CALLS,
    },
    sockets: { socket: 41, socketpair: 53 },
  },
  arm64: {
    audit: 0xc00000b7,
    refused: {
      ...{ memfd_create: 279, shmget: 194, shmctl: 195, shmat: 196, shmdt: 197, msgget: 186, msgctl: 187, msgrcv: 188, msgsnd: 189 },
      ...{ semget: 190, semctl: 191, semtimedop: 192, semop: 193, mq_open: 180, add_key: 217, request_key: 218, keyctl: 219 },
      ...{ ptrace: 117, process_vm_readv: 270, process_vm_writev: 271, bpf: 280, perf_event_open: 241, userfaultfd: 282 },
      ...{ mount: 40, umount2: 39, pivot_root: 41, unshare: 97, setns: 268, name_to_handle_at: 264, open_by_handle_at: 265 },
      ...{ init_module: 105, finit_module: 273, kexec_load: 104, kexec_file_load: 294, syslog: 116, fanotify_init: 262 },
      ...NEW_CALLS,
    },
    sockets: { socket: 198, socketpair: 199 },
  },
}

/** AF_UNIX, AF_INET and AF_INET6. */
const FAMILIES = [1, 2, 10]

const LOAD_WORD = 0x20
const JUMP_IF_EQUAL = 0x15
const JUMP_IF_NOT_BELOW = 0x35
const RETURN = 0x06
const ALLOW = 0x7fff0000
const END_PROCESS = 0x80000000
/** ENOSYS: as on a kernel that does not have it, for which programs are prepared. */
const NOT_THERE = 0x00050000 | 38
/** EAFNOSUPPORT: as on a kernel without that family. */
const NO_FAMILY = 0x00050000 | 97
const NUMBER_AT = 0
const ARCHITECTURE_AT = 4
/** The low half of the first argument: the kernel looks at no more of a family. Both machines are little-endian. */
const FAMILY_AT = 16
/** Calls of 32-bit programs on a 64-bit machine of Intel's kind: the same calls by other numbers. */
const X32 = 0x40000000

/** `families`: of the sockets that a program may make. Null means that no such machine is known here. */
export function systemCallFilter(architecture: string, families: readonly number[] = FAMILIES): Uint8Array | null {
  const machine = Object.hasOwn(MACHINES, architecture) ? MACHINES[architecture] : undefined
  if (machine === undefined) return null
  const numbers = Object.values(machine.refused)
  const { socket, socketpair } = machine.sockets
  // The end of the program, from its last statement: what a jump leads to.
  const end = [statement(RETURN, NO_FAMILY), statement(RETURN, ALLOW), statement(RETURN, NOT_THERE)]
  const allowed = families.map((family, index) => statement(JUMP_IF_EQUAL, family, families.length - index, 0))
  const sockets = [
    statement(JUMP_IF_EQUAL, socket, 1, 0),
    statement(JUMP_IF_EQUAL, socketpair, 0, allowed.length + 2),
    statement(LOAD_WORD, FAMILY_AT),
    ...allowed,
  ]
  const toNotThere = (left: number) => left + sockets.length + end.length - 1
  const refusals = numbers.map((number, index) => statement(JUMP_IF_EQUAL, number, toNotThere(numbers.length - index - 1), 0))
  return Buffer.concat([
    statement(LOAD_WORD, ARCHITECTURE_AT),
    statement(JUMP_IF_EQUAL, machine.audit, 1, 0),
    statement(RETURN, END_PROCESS),
    statement(LOAD_WORD, NUMBER_AT),
    statement(JUMP_IF_NOT_BELOW, X32, toNotThere(numbers.length), 0),
    ...refusals,
    ...sockets,
    ...end,
  ])
}

/** `struct sock_filter`: how many further to go if it is so, and if it is not. */
function statement(code: number, value: number, ifSo = 0, ifNot = 0): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeUInt16LE(code, 0)
  bytes.writeUInt8(ifSo, 2)
  bytes.writeUInt8(ifNot, 3)
  bytes.writeUInt32LE(value >>> 0, 4)
  return bytes
}
