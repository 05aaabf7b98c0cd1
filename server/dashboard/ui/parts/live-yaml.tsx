// The live object as YAML, for reading and copying. Values of Secrets are hidden by the agent.
import type { JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import { type AskedRef, type At, linesOf, useAnswer, within } from '../state/ask.ts'
import { text } from '../words/first.ts'
import { more } from '../words/later.ts'
import { yamlOf } from '../yaml.ts'
import { AskAgain, Live } from './live-answer.tsx'

export function LiveYaml({ at, of }: { at: At; of: AskedRef }) {
  const answer = useAnswer(at.cluster, { question: { kind: 'object', ref: of }, within: within(at) })
  const [line] = linesOf(answer, 'object')
  const yaml = useMemo(() => (line === undefined ? '' : yamlOf(line.object)), [line])
  return (
    <Live answer={answer} hasLines={line !== undefined}>
      {line !== undefined && (
        <>
          <div class="row spread">
            <span class="small muted">{line.masked.length > 0 ? more.ask.masked(line.masked.length) : ''}</span>
            <span class="row tight">
              <Copy content={yaml} />
              <AskAgain answer={answer} />
            </span>
          </div>
          <Yaml content={yaml} label={`${more.ask.tabs.yaml}: ${of.kind} ${of.name}`} />
        </>
      )}
    </Live>
  )
}

function Copy({ content }: { content: string }) {
  const [isCopied, setCopied] = useState(false)
  const copy = async () => {
    await navigator.clipboard.writeText(content).catch(() => {})
    setCopied(true)
    setTimeout(() => setCopied(false), 2_000)
  }
  return (
    <button type="button" class="quiet" onClick={copy}>
      {isCopied ? text.copy.copied : text.copy.copy}
    </button>
  )
}

/** Longer text stays plain: a span for each key would make the page slow. */
const COLOURED_LINES_MAX = 3_000
const KEY = /^(\s*(?:- )*)("(?:[^"\\]|\\.)*"|[^\s:#"'][^:]*):(?=\s|$)/

/** YAML with its keys set apart. */
export function Yaml({ content, label }: { content: string; label: string }) {
  const drawn = useMemo((): JSX.Element[] | string => {
    const lines = content.split('\n')
    return lines.length > COLOURED_LINES_MAX ? content : lines.map(coloured)
  }, [content])
  return (
    <pre class="code" tabIndex={0} role="region" aria-label={label}>
      {drawn}
    </pre>
  )
}

function coloured(line: string, index: number): JSX.Element {
  const [whole = '', indent = '', key = ''] = KEY.exec(line) ?? []
  if (whole === '') return <span key={index}>{`${line}\n`}</span>
  return (
    <span key={index}>
      {indent}
      <b>{key}</b>
      {`${line.slice(indent.length + key.length)}\n`}
    </span>
  )
}
