// Questions to the agent of a cluster: an object as it is now, its children, events, logs. Answers come line by line
// and are kept only by the page that asked.
import { useEffect, useState } from 'preact/hooks'
import type { AnswerLine, AnswerLineOf, AskedRef, AskRequest } from '../../../../shared/protocol/ask.ts'
import { text } from '../words/first.ts'
import { apiPath, type Refusal, send } from './api.ts'
import { newestLines } from './newest-lines.ts'
import { part } from './place.ts'
import { refusalOf } from './resource.ts'

export type { AnswerLineOf, AskedRef, AskRequest }

/** Calls `onLines` with whole lines as they come; resolves at the end of the answer. */
export async function ask(
  cluster: string,
  request: AskRequest,
  onLines: (lines: AnswerLine[]) => void,
  signal: AbortSignal,
  reason = '',
): Promise<void> {
  const response = await send('POST', apiPath(`/clusters/${part(cluster)}/ask`), request, signal, 'application/x-ndjson', reason)
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true, value: undefined }
    const pieces = (rest + (value ?? '')).split('\n')
    rest = done ? '' : (pieces.pop() ?? '')
    const lines = pieces.filter((piece) => piece.trim() !== '').map((piece) => JSON.parse(piece) as AnswerLine)
    if (lines.length > 0) onLines(lines)
    if (done) return
  }
}

export interface Answer {
  lines: readonly AnswerLine[]
  isDone: boolean
  refusal: Refusal | null
  /** Not everything was sent. */
  isCut: boolean
}

/** Where a question is asked, and the service that confines it. */
export interface At {
  cluster: string
  project: string
  service: string
}
export const within = ({ project, service }: At) => ({ project, service })

const NOTHING: Answer = { lines: [], isDone: false, refusal: null, isCut: false }

/** Asks when it is first shown, and again when the request changes or `again` is called. Null means asks nothing. */
export function useAnswer(cluster: string, request: AskRequest | null): Answer & { again(): void } {
  const [answer, setAnswer] = useState(NOTHING)
  const [turn, setTurn] = useState(0)
  const key = JSON.stringify([cluster, request, turn])
  useEffect(() => {
    setAnswer(NOTHING)
    if (request === null) return
    const ended = new AbortController()
    let lines: AnswerLine[] = []
    let frame = 0
    let failed: AnswerLineOf<'failed'> | undefined
    let isCut = false
    const show = (change: Partial<Answer> = {}) => {
      cancelAnimationFrame(frame)
      frame = 0
      const refusal = failed === undefined ? null : { ...NO_STATUS, code: failed.code, detail: failed.message, remedy: failed.remedy ?? '' }
      if (!ended.signal.aborted) setAnswer((before) => ({ ...before, lines, refusal, isCut, ...change }))
    }
    const onLines = (some: AnswerLine[]) => {
      for (const line of some) {
        if (line.t === 'failed') failed = line
        else if (line.t === 'end') isCut = line.truncated !== undefined
      }
      lines = newestLines([...lines, ...some.filter(({ t }) => t !== 'failed' && t !== 'end')])
      if (frame === 0) frame = requestAnimationFrame(() => show())
    }
    ask(cluster, request, onLines, ended.signal).then(
      () => show({ isDone: true }),
      (error: unknown) => show({ isDone: true, refusal: refusalOf(error) }),
    )
    return () => {
      ended.abort()
      cancelAnimationFrame(frame)
    }
  }, [key])
  return { ...answer, again: () => setTurn((before) => before + 1) }
}

const NO_STATUS = { status: 0, problems: [] }

export const linesOf = <T extends AnswerLine['t']>({ lines }: Pick<Answer, 'lines'>, t: T): Array<AnswerLineOf<T>> =>
  lines.filter((line): line is AnswerLineOf<T> => line.t === t)

/** Asks once and waits for the end. Throws what the agent refused. */
export async function askOnce(cluster: string, request: AskRequest, reason = ''): Promise<AnswerLine[]> {
  const all: AnswerLine[] = []
  await ask(cluster, request, (lines) => void all.push(...lines), new AbortController().signal, reason)
  const failed = all.find((line): line is AnswerLineOf<'failed'> => line.t === 'failed')
  if (failed !== undefined) throw new Error(`${failed.message}. ${failed.remedy ?? ''}`.trim())
  if (all.length === 0) throw new Error(text.errors.unreachable)
  return all
}
