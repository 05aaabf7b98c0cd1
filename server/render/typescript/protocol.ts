// The messages between the server and the runner inside the sandbox: a task on standard input, an answer between two
// frames on standard output.
import { z } from 'zod'
import type { InputRead, RenderInputs } from '../inputs.ts'

export interface RunnerTask {
  /** Below /work. */
  entry: string
  /** A line that nothing else prints by chance. */
  frame: string
  inputs: RenderInputs
}

export interface RunnerFault {
  message: string
  /** The place that cannot be read. */
  position?: { file: string; line: number; column: number }
  /** The stack of the thrown error. */
  stack?: string
}

export interface RunnerAnswer {
  objects?: readonly unknown[]
  faults?: readonly RunnerFault[]
  reads: readonly InputRead[]
}

/** It comes from where code of others ran. */
export const runnerAnswerSchema = z.object({
  objects: z.array(z.unknown()).optional(),
  faults: z
    .array(
      z.object({
        message: z.string(),
        position: z.object({ file: z.string(), line: z.number(), column: z.number() }).optional(),
        stack: z.string().optional(),
      }),
    )
    .optional(),
  reads: z.array(z.array(z.string())),
})
