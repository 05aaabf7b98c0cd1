// Logs of a Pod, or of all Pods of a workload, as they are written. The newest lines are kept; the view stays at the
// end until somebody scrolls up.
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { number } from '../format.ts'
import { type AnswerLineOf, type AskedRef, type At, linesOf, useAnswer, within } from '../state/ask.ts'
import { more } from '../words/later.ts'
import { Live } from './live-answer.tsx'

const TAIL = 500

type Piece = AnswerLineOf<'log'>

export function LiveLogs({ at, of }: { at: At; of: AskedRef }) {
  const [isFollowed, setFollowed] = useState(true)
  const [isPrevious, setPrevious] = useState(false)
  const [words, setWords] = useState('')
  const how = isPrevious ? { previous: true } : { follow: isFollowed }
  const answer = useAnswer(at.cluster, { question: { kind: 'logs', ref: of, tailLines: TAIL, ...how }, within: within(at) })
  const asked = words.trim().toLowerCase()
  const pieces = useMemo(() => linesOf(answer, 'log').map((piece) => ({ piece, lines: linesIn(piece, asked) })), [answer.lines, asked])
  const shown = pieces.reduce((sum, { lines }) => sum + lines.length, 0)
  const sources = new Set(pieces.map(({ piece: { pod, container } }) => `${pod} ${container}`))
  const isLive = isFollowed && !isPrevious && !answer.isDone
  return (
    <Live answer={answer} hasLines={pieces.length > 0 || isLive} empty={more.ask.noLogs}>
      <div class="filters">
        <input
          type="search"
          aria-label={more.ask.filterLogs}
          placeholder={more.ask.filterLogs}
          value={words}
          onInput={(event) => setWords(event.currentTarget.value)}
        />
        <label class="check">
          <input type="checkbox" checked={isFollowed && !isPrevious} disabled={isPrevious} onChange={() => setFollowed(!isFollowed)} />
          {more.ask.follow}
        </label>
        <label class="check">
          <input type="checkbox" checked={isPrevious} onChange={() => setPrevious(!isPrevious)} />
          {more.ask.previous}
        </label>
        <span class="told">{more.ask.logLines(number(shown), isLive)}</span>
      </div>
      {pieces.length > 0 && <LogBox pieces={pieces} isNamed={sources.size > 1} label={`${more.ask.tabs.logs}: ${of.name}`} />}
    </Live>
  )
}

function linesIn({ text: some }: Piece, asked: string): string[] {
  const lines = some.replace(/\n$/, '').split('\n')
  return asked === '' ? lines : lines.filter((line) => line.toLowerCase().includes(asked))
}

interface Shown {
  piece: Piece
  lines: readonly string[]
}

/** Pieces never change: each keeps its element while others come and go. */
const keys = new WeakMap<Piece, number>()
let lastKey = 0
function keyOf(piece: Piece): number {
  const held = keys.get(piece) ?? ++lastKey
  keys.set(piece, held)
  return held
}

function LogBox({ pieces, isNamed, label }: { pieces: readonly Shown[]; isNamed: boolean; label: string }) {
  const box = useRef<HTMLDivElement>(null)
  const isAtEnd = useRef(true)
  useLayoutEffect(() => {
    const node = box.current
    if (node !== null && isAtEnd.current) node.scrollTop = node.scrollHeight
  }, [pieces])
  return (
    <div
      class="log"
      ref={box}
      tabIndex={0}
      role="log"
      aria-live="off"
      aria-label={label}
      onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
        isAtEnd.current = scrollTop + clientHeight > scrollHeight - 24
      }}
    >
      {pieces.map(({ piece, lines }) => (
        <LogPiece key={keyOf(piece)} piece={piece} lines={lines} isNamed={isNamed} />
      ))}
    </div>
  )
}

function LogPiece({ piece: { pod, container }, lines, isNamed }: Shown & { isNamed: boolean }) {
  return useMemo(
    () => (
      <div class="log-piece">
        {lines.map((line, index) => (
          <div key={index} class={isBad(line) ? 'is-bad' : undefined}>
            {isNamed && (
              <span class="from" title={`${pod} ${container}`}>
                {pod.split('-').at(-1)} {container}
              </span>
            )}
            {line}
          </div>
        ))}
      </div>
    ),
    [lines, isNamed],
  )
}

/** Level of the line, as loggers write it. */
const isBad = (line: string): boolean => /\b(ERROR|FATAL|PANIC)\b|"level":"(error|fatal)"|level=(error|fatal)/.test(line)
