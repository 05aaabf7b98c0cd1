// Bytes of a watch as events: line splitting and what one line means. Pure; requests, resuming and retries are kube-watch.ts's.
import { z } from 'zod'
import { isK8sObject, type K8sObject } from '../../shared/kube/object.ts'
import { failureOf } from './api-failure.ts'
import type { ApiFailure } from './cluster.ts'

/** One line is one object; etcd holds 1.5 MB by default. More than this is not a watch. */
export const LINE_BYTES_MAX = 32 * 1024 * 1024

const NEWLINE = 10

/** Cuts a byte stream into lines wherever its chunks happen to end, also inside a UTF-8 sequence. */
export class LineSplitter {
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  #pending: Uint8Array[] = []
  #pendingBytes = 0

  /** Whole lines that `chunk` completes, without their newline; empty lines are left out. */
  push(chunk: Uint8Array): string[] {
    const lines: string[] = []
    let start = 0
    for (let end = chunk.indexOf(NEWLINE, start); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      const line = this.#take(chunk.subarray(start, end))
      if (line !== '') lines.push(line)
      start = end + 1
    }
    if (start < chunk.length) {
      // Copied: the stream may reuse the buffer of a chunk that was read.
      this.#pending.push(chunk.slice(start))
      this.#pendingBytes += chunk.length - start
      if (this.#pendingBytes > LINE_BYTES_MAX) throw new Error(`a line of a watch is longer than ${LINE_BYTES_MAX} bytes`)
    }
    return lines
  }

  #take(tail: Uint8Array): string {
    if (this.#pending.length === 0) return this.#decoder.decode(tail)
    const line = this.#decoder.decode(Buffer.concat([...this.#pending, tail]))
    this.#pending = []
    this.#pendingBytes = 0
    return line
  }
}

export type WatchLine =
  | { kind: 'object'; type: 'ADDED' | 'MODIFIED' | 'DELETED'; object: K8sObject; resourceVersion: string }
  | { kind: 'bookmark'; resourceVersion: string; initialEventsEnd: boolean }
  /** 410 inside a 200: the server no longer remembers the position. */
  | { kind: 'expired' }
  | { kind: 'error'; failure: ApiFailure }

const bookmark = z.looseObject({
  metadata: z.looseObject({ resourceVersion: z.string(), annotations: z.record(z.string(), z.string()).nullish() }),
})

/** KA20: a line that cannot be understood is an error of the stream, never skipped: a lost event would be a wrong picture for ever. */
export function parseWatchLine(line: string, plural: string): WatchLine {
  const event = parseJson(line)
  if (event === null || typeof event !== 'object' || !('type' in event))
    return unreadable(`a line of the watch is no event: ${line.slice(0, 120)}`)
  const { type, object } = event as { type: unknown; object?: unknown }
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED': {
      const checked = asObject(object)
      if (checked === null) return unreadable(`an event of the watch holds no object: ${line.slice(0, 120)}`)
      return { kind: 'object', type, object: checked, resourceVersion: checked.metadata.resourceVersion ?? '' }
    }
    case 'BOOKMARK': {
      const checked = bookmark.safeParse(object)
      if (!checked.success) return unreadable(`a bookmark without a resourceVersion: ${line.slice(0, 120)}`)
      const { resourceVersion, annotations } = checked.data.metadata
      return { kind: 'bookmark', resourceVersion, initialEventsEnd: annotations?.['k8s.io/initial-events-end'] === 'true' }
    }
    case 'ERROR': {
      const code = codeOf(object)
      if (code === 410) return { kind: 'expired' }
      return { kind: 'error', failure: failureOf({ status: code, body: object, text: line, retryAfter: null, plural }) }
    }
    default:
      return unreadable(`an event of unknown type ${type}`)
  }
}

/** The value itself when it is an object of Kubernetes: checked, not rebuilt, so that nothing in it changes. */
export function asObject(value: unknown): K8sObject | null {
  return isK8sObject(value) ? value : null
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const codeOf = (status: unknown): number =>
  status !== null && typeof status === 'object' && 'code' in status && typeof status.code === 'number' ? status.code : 500

const unreadable = (message: string): WatchLine => ({
  kind: 'error',
  failure: { kind: 'server_error', status: 200, reason: 'Unreadable', message },
})
