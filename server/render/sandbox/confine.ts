// A program of its own, from which every program of `--render-sandbox limits` comes: it takes from itself, by Landlock,
// all files but those of the run, and by seccomp all sockets, and becomes the program then. Its arguments are a
// ConfineOrder (orderArguments). Exit code CONFINE_FAILED: the program was not started.
import { dlopen, FFIType, ptr } from 'bun:ffi'
import { statSync, writeSync } from 'node:fs'

export interface ConfineOrder {
  argv: readonly string[]
  env: Readonly<Record<string, string>>
  cwd: string
  /** Files and folders that may be read and started. */
  read: readonly string[]
  /** Files and folders that may be written, too. */
  write: readonly string[]
  /** Statements for seccomp (system-calls.ts), base64. */
  filter: string
}

const CONFINE_FAILED = 125
const CREATE_RULESET = 444n
const ADD_RULE = 445n
const RESTRICT_SELF = 446n
const ASK_VERSION = 1n
const RULE_PATH_BENEATH = 1n
const PR_SET_PDEATHSIG = 1
const PR_SET_SECCOMP = 22
const SECCOMP_MODE_FILTER = 2n
const STATEMENT_BYTES = 8
const PR_SET_NO_NEW_PRIVS = 38
const SIGKILL = 9
const O_PATH_CLOEXEC = 0o12000000

/** The rights on files by version of Landlock, from 1: each version has all earlier rights. */
const FILE_RIGHTS = [0x1fffn, 0x3fffn, 0x7fffn, 0x7fffn, 0xffffn]
/** Execute, write, read, truncate, ioctl: those that a file can have that is no folder. */
const OF_NO_FOLDER = 0xc007n
/** Execute, read a file, read a folder. */
const READ = 0xdn
/** Bind and connect. */
const TCP = 3n
/** Abstract sockets and signals of others. */
const SCOPES = 3n

const { i32, i64, u64, pointer } = FFIType
const { symbols: libc } = dlopen('libc.so.6', {
  syscall: { args: [i64, u64, u64, u64, u64], returns: i64 },
  open: { args: [pointer, i32], returns: i32 },
  prctl: { args: [i32, u64, u64, u64, u64], returns: i32 },
  execve: { args: [pointer, pointer, pointer], returns: i32 },
})

const kept: Uint8Array[] = []
function text(value: string): Uint8Array {
  const bytes = Buffer.from(`${value}\0`)
  kept.push(bytes)
  return bytes
}
const texts = (values: readonly string[]): BigUint64Array => new BigUint64Array([...values.map((value) => BigInt(ptr(text(value)))), 0n])

function fail(what: string): never {
  writeSync(2, `skerry-confine: ${what}\n`)
  process.exit(CONFINE_FAILED)
}

function call(number: bigint, ...args: bigint[]): number {
  const [a = 0n, b = 0n, c = 0n, d = 0n] = args
  return Number(libc.syscall(number, a, b, c, d))
}

function confine({ read, write }: ConfineOrder): void {
  const version = call(CREATE_RULESET, 0n, 0n, ASK_VERSION)
  if (version < 1) fail('this kernel has no Landlock')
  const rights = FILE_RIGHTS[Math.min(version, FILE_RIGHTS.length) - 1] ?? 0n
  const attributes = new BigUint64Array([rights, version >= 4 ? TCP : 0n, version >= 6 ? SCOPES : 0n])
  const size = version >= 6 ? 24n : version >= 4 ? 16n : 8n
  const rules = call(CREATE_RULESET, BigInt(ptr(attributes)), size, 0n)
  if (rules < 0) fail('Landlock accepts no rules')
  const allow = (path: string, wanted: bigint) => {
    const file = libc.open(ptr(text(path)), O_PATH_CLOEXEC)
    if (file < 0) fail(`${path} cannot be opened`)
    const rule = Buffer.alloc(12)
    rule.writeBigUInt64LE(statSync(path).isDirectory() ? wanted : wanted & OF_NO_FOLDER, 0)
    rule.writeInt32LE(file, 8)
    if (call(ADD_RULE, BigInt(rules), RULE_PATH_BENEATH, BigInt(ptr(rule)), 0n) !== 0) fail(`Landlock refuses a rule for ${path}`)
  }
  for (const path of read) allow(path, READ)
  for (const path of write) allow(path, rights)
  if (libc.prctl(PR_SET_NO_NEW_PRIVS, 1n, 0n, 0n, 0n) !== 0) fail('PR_SET_NO_NEW_PRIVS is refused')
  if (call(RESTRICT_SELF, BigInt(rules), 0n) !== 0) fail('cannot enable Landlock')
}

/** To be called last: it cannot be taken back. */
function refuseCalls(filter: string): void {
  const statements = Buffer.from(filter, 'base64')
  kept.push(statements)
  const program = Buffer.alloc(16)
  program.writeUInt16LE(statements.byteLength / STATEMENT_BYTES, 0)
  program.writeBigUInt64LE(BigInt(ptr(statements)), 8)
  if (libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, BigInt(ptr(program)), 0n, 0n) !== 0) fail('seccomp refuses the filter')
}

const order: ConfineOrder = JSON.parse(Buffer.from(process.argv.slice(1).join(''), 'base64').toString())
libc.prctl(PR_SET_PDEATHSIG, BigInt(SIGKILL), 0n, 0n, 0n)
process.chdir(order.cwd)
const [path = ''] = order.argv
const argv = texts(order.argv)
const env = texts(Object.entries(order.env).map(([name, value]) => `${name}=${value}`))
confine(order)
refuseCalls(order.filter)
libc.execve(ptr(text(path)), ptr(argv), ptr(env))
fail(`${path} cannot be started`)
