// The port behind which programs run that others wrote or whose input others wrote: helm, kustomize, TypeScript, and
// the operator's own renderers. No network, an empty environment, nothing to see but the tree that is given, nothing to
// write but a bounded /tmp.

export interface SandboxLimits {
  timeoutMs: number
  memoryBytes: number
  /** The limit of standard output. Standard error is cut at 64 KiB. */
  outputBytes: number
}
export const SANDBOX_LIMITS: SandboxLimits = { timeoutMs: 30_000, memoryBytes: 512 * 1024 * 1024, outputBytes: 64 * 1024 * 1024 }

/** On PATH inside are the program itself and, for kustomize, `helm` and `helm3` as far as the server has them. `helm`
 *  is helm 4, `helm3` helm 3; `bun` is this very binary; anything else is a name of the operator's allow-list. */
export type SandboxProgram = 'helm' | 'helm3' | 'kustomize' | 'bun' | { exec: string }

export interface SandboxRun {
  program: SandboxProgram
  /** Files are named relative to the working directory: /work is there only where there is bubblewrap. */
  args: readonly string[]
  /** Relative path → bytes; read-only below /work, which is the working directory unless `cwd` names a folder in it.
   *  Paths are checked: none leads out. What is the same for many runs (a chart) is best below one folder of the root
   *  and what differs (values) beside it: a folder of 8 files and more is written once for all runs that have the same.
   */
  files: ReadonlyMap<string, Uint8Array>
  cwd?: string
  stdin?: Uint8Array
  env?: Readonly<Record<string, string>>
  limits?: Partial<SandboxLimits>
}

/** `done`: it came to its end, with whatever exit code; `stderr` may be cut (SB5). */
export type SandboxOutcome =
  | { kind: 'done'; exitCode: number; stdout: Uint8Array; stderr: string }
  /** `message` says which limit, in words for the author of the manifests; `ended`: by none of them, but from outside.
   */
  | { kind: 'stopped'; why: 'time' | 'memory' | 'output' | 'processes' | 'ended'; message: string; stderr: string }

/** IC14: what the machine has a part in, by its load or for want of memory, may be otherwise another time. */
export const mayPassLater = ({ why }: Extract<SandboxOutcome, { kind: 'stopped' }>): boolean => why === 'time' || why === 'ended'

export interface Sandbox {
  /** Throws `renderer_missing` when the program is not on this server, `sandbox_unavailable` when it must not run
   *  without isolation here. */
  run(run: SandboxRun, signal?: AbortSignal): Promise<SandboxOutcome>
  /** As the programs say themselves, `helm 4.3.1`; part of what a render depends on. Null means that it is not there.
   */
  version(program: SandboxProgram): Promise<string | null>
}
