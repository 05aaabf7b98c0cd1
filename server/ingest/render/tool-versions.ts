// Versions of the programs of one reconciliation of a service: it uses those of the first request, and can tell whether
// they still exist.
import { AppError } from '../../../shared/runtime/error.ts'
import { programOf } from '../../render/record/sandbox.ts'
import type { Renders } from '../content-port.ts'

export class ToolVersions {
  private readonly asked: Pick<Renders, 'version'>
  private readonly first = new Map<string, string | null>()

  constructor(asked: Pick<Renders, 'version'>) {
    this.asked = asked
  }

  /**
   * The version that the reconciliation uses. A program that must not run here has none either: its run reports the
   * reason.
   */
  async held(tool: string): Promise<string | null> {
    const held = this.first.get(tool)
    if (held !== undefined) return held
    const now = await this.now(tool)
    return this.first.get(tool) ?? now
  }

  now(tool: string): Promise<string | null> {
    return this.asked.version(programOf(tool)).then(
      (version) => this.note(tool, version),
      (error: unknown) => {
        if (!(error instanceof AppError)) throw error
        return this.note(tool, null)
      },
    )
  }

  /** Renderers ask for the version before they run a program, and get the one that is there then. */
  note(tool: string, version: string | null): string | null {
    if (!this.first.has(tool)) this.first.set(tool, version)
    return version
  }
}
