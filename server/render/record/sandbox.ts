// A sandbox that tells which programs took part: what a render came to depends on their versions.
import { mayPassLater, type Sandbox, type SandboxProgram } from '../sandbox.ts'

/** `helm`, `exec jsonnet`. */
export const toolName = (program: SandboxProgram): string => (typeof program === 'string' ? program : `exec ${program.exec}`)
export const programOf = (tool: string): SandboxProgram =>
  tool.startsWith('exec ') ? { exec: tool.slice('exec '.length) } : (tool as 'helm')

/** `late`: a program failed as it may not the next time. */
export function recordedSandbox(sandbox: Sandbox, note: (tool: string) => void, late: () => void): Sandbox {
  return {
    async run(run, signal) {
      note(toolName(run.program))
      const outcome = await sandbox.run(run, signal)
      if (outcome.kind === 'stopped' && mayPassLater(outcome)) late()
      return outcome
    },
    version(program) {
      note(toolName(program))
      return sandbox.version(program)
    },
  }
}
