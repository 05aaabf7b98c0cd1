// IC11: equal questions at the same time run a program once. Its answer is kept here and by control.
import { sha256Hex } from '../../shared/kube/canonical.ts'
import type { RenderAnswers } from '../render/cache/renders.ts'
import { isFailedAnswer } from '../render/program-answer.ts'
import { createInFlight } from '../sources/in-flight.ts'
import { SizedCache } from '../sources/sized-cache.ts'

const KEPT_BYTES_MAX = 16 * 1024 * 1024

/** The answer of `run` for exactly these parts. `secret` says, after the run, whether the answer may hold a secret. */
export type Once = (parts: readonly string[], run: () => Promise<Uint8Array>, secret: () => boolean) => Promise<Uint8Array>

export function createOnce(answers: RenderAnswers): Once {
  const kept = new SizedCache<Uint8Array>(KEPT_BYTES_MAX, ({ byteLength }) => byteLength)
  const inFlight = createInFlight<Uint8Array>()
  return (parts, run, secret) => {
    const named = sha256Hex(JSON.stringify(parts))
    return inFlight(named, async () => {
      const before = kept.get(named) ?? inflated(await answers.get(named))
      const bytes = before ?? (await run())
      kept.set(named, bytes)
      if (before === null && !isFailedAnswer(bytes)) await answers.put(named, Bun.zstdCompressSync(bytes, { level: 1 }), secret())
      return bytes
    })
  }
}

function inflated(answer: Uint8Array | null): Uint8Array | null {
  try {
    return answer === null ? null : Bun.zstdDecompressSync(answer)
  } catch {
    return null
  }
}
