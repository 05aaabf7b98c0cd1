// Keeps a program's answers to a renderer: results on the disk too, refusals in memory only, and nothing of a program
// that did not end.
import type { RenderJob } from './renderer.ts'
import type { SandboxOutcome } from './sandbox.ts'

type Stop = Extract<SandboxOutcome, { kind: 'stopped' }>

export interface ProgramAnswer<Notes> {
  /** It refused: the same parts are refused again, but not for ever (IC8). */
  failed: boolean
  /** Warnings, problems: whatever JSON can hold. */
  notes: Notes
  output: Uint8Array
}

/** A limit was reached, or the program was ended: the same input may succeed another time. */
export class ProgramStopped extends Error {
  readonly stop: Stop
  constructor(stop: Stop) {
    super(stop.message)
    this.stop = stop
  }
}

/** As `run` answers, which is of the same parts always the same type; a stop when it throws ProgramStopped. */
export async function askProgram<Notes>(
  job: Pick<RenderJob, 'once'>,
  parts: readonly string[],
  run: () => Promise<ProgramAnswer<Notes>>,
): Promise<ProgramAnswer<Notes> | Stop> {
  try {
    const bytes = await job.once(parts, async () => packed(await run()))
    const end = bytes.indexOf(LINE_END)
    const { failed, notes } = JSON.parse(new TextDecoder().decode(bytes.subarray(0, end))) as Omit<ProgramAnswer<Notes>, 'output'>
    return { failed, notes, output: bytes.subarray(end + 1) }
  } catch (error) {
    if (error instanceof ProgramStopped) return error.stop
    throw error
  }
}

const LINE_END = 0x0a
const FAILED = '{"failed":true'

/** One line of JSON, and after it what the program wrote. */
function packed<Notes>({ failed, notes, output }: ProgramAnswer<Notes>): Uint8Array {
  return Buffer.concat([new TextEncoder().encode(`${JSON.stringify({ failed, notes })}\n`), output])
}

/** True if the packed answer is a refusal. */
export const isFailedAnswer = (bytes: Uint8Array): boolean => new TextDecoder().decode(bytes.subarray(0, FAILED.length)) === FAILED
