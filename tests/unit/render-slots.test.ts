import { describe, expect, test } from 'bun:test'
import { createSlots } from '../../server/render/sandbox/slots.ts'

/** Each works until it is told to end; `began` names them in the order in which they began. */
function workers(count: number) {
  const slots = createSlots(count)
  const began: string[] = []
  const ends = new Map<string, () => void>()
  const enter = (name: string, signal?: AbortSignal, whose: string | undefined = name[0]) => {
    const work = () => {
      began.push(name)
      return new Promise<void>((resolve) => ends.set(name, resolve))
    }
    return slots.run(work, signal, whose)
  }
  const end = async (name: string) => {
    await settle()
    ends.get(name)?.()
    await settle()
  }
  return { began, enter, end }
}

async function settle() {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
}

describe('IC18 whoever waits has turns of its own', () => {
  test('one of a service with thousands does not keep others waiting', async () => {
    const { began, enter, end } = workers(2)
    for (let n = 0; n < 1_000; n++) void enter(`a${n}`)
    for (const name of ['b0', 'b1', 'c0']) void enter(name)
    for (const name of ['a0', 'a1', 'a2', 'b0', 'c0', 'a3', 'b1']) await end(name)
    expect(began).toEqual(['a0', 'a1', 'a2', 'b0', 'c0', 'a3', 'b1', 'a4', 'a5'])
  })

  test('who gives up leaves the line, and who comes back to an empty one goes behind the others', async () => {
    const { began, enter, end } = workers(1)
    const stop = new AbortController()
    void enter('a0')
    const given = ['b0', 'b1'].map((name) => enter(name, stop.signal).catch((error: unknown) => error))
    void enter('c0')
    stop.abort(new Error('enough'))
    expect(await Promise.all(given)).toEqual([stop.signal.reason, stop.signal.reason])
    void enter('b2')
    for (const name of ['a0', 'c0', 'b2']) await end(name)
    expect(began).toEqual(['a0', 'c0', 'b2'])
    await enter('d0', stop.signal).catch((error: unknown) => expect(error).toBe(stop.signal.reason))
    void enter('e0')
    await settle()
    expect(began.at(-1)).toBe('e0')
  })

  test('what fails gives its place back', async () => {
    const slots = createSlots(1)
    await slots.run(() => Promise.reject(new Error('no'))).catch(() => {})
    expect(await slots.run(async () => 'done')).toBe('done')
  })
})
