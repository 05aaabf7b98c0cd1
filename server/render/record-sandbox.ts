// A sandbox that tells which programs took part: what a render came to depends on their versions.
import type { Sandbox, SandboxProgram } from './sandbox.ts'

/** `helm`, `exec jsonnet`. */
export const toolName = (program: SandboxProgram): string => (typeof program === 'string' ? program : `exec ${program.exec}`)
export const programOf = (tool: string): SandboxProgram =>
  tool.startsWith('exec ') ? { exec: tool.slice('exec '.length) } : (tool as 'helm')

export function recordedSandbox(sandbox: Sandbox, note: (tool: string) => void): Sandbox {
  return {
    run(run, signal) {
      note(toolName(run.program))
      return sandbox.run(run, signal)
    },
    version(program) {
      note(toolName(program))
      return sandbox.version(program)
    },
  }
}
