// Versions of the programs that take part in one pass of a service: the pass goes by those that were there when anybody asked first, and can tell whether they still are.
import { AppError } from '../../../shared/protocol/error.ts'
import { programOf, toolName } from '../../render/record/sandbox.ts'
import type { Sandbox, SandboxProgram } from '../../render/sandbox.ts'

export class ToolVersions {
  /** For the renderers: they ask for the version before they run the program, and get the one that is there now. */
  readonly sandbox: Sandbox
  private readonly asked: Sandbox
  private readonly first = new Map<string, string | null>()

  constructor(sandbox: Sandbox) {
    this.asked = sandbox
    this.sandbox = { run: (run, signal) => sandbox.run(run, signal), version: (program) => this.ask(program) }
  }

  /** By which the pass goes. A program that must not run here has none either: who needs it hears why from its run. */
  async held(tool: string): Promise<string | null> {
    const held = this.first.get(tool)
    if (held !== undefined) return held
    const now = await this.now(tool)
    return this.first.get(tool) ?? now
  }

  now(tool: string): Promise<string | null> {
    return this.ask(programOf(tool)).catch((error: unknown) => {
      if (!(error instanceof AppError)) throw error
      this.note(tool, null)
      return null
    })
  }

  private async ask(program: SandboxProgram): Promise<string | null> {
    const version = await this.asked.version(program)
    this.note(toolName(program), version)
    return version
  }

  private note(tool: string, version: string | null): void {
    if (!this.first.has(tool)) this.first.set(tool, version)
  }
}
