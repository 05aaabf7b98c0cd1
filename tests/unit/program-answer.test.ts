// What a program said: kept on the disk when it made something, in memory when it refused, and not at all when it was
// ended.
import { expect, test } from 'bun:test'
import { createRenderCache } from '../../server/render/cache/renders.ts'
import { runPipeline } from '../../server/render/pipeline.ts'
import { askProgram, ProgramStopped } from '../../server/render/program-answer.ts'
import type { RenderJob } from '../../server/render/renderer.ts'
import { createOnce } from '../../server/worker/once.ts'
import { memoryTree } from '../support/render-job.ts'
import { testMac } from '../support/render-kit.ts'

function openCache(kept = new Map<string, Uint8Array>()) {
  const files = {
    get: async (key: string) => kept.get(key) ?? null,
    put: async (key: string, bytes: Uint8Array) => void kept.set(key, bytes),
  }
  const cache = createRenderCache({ mac: testMac, files })
  let runs = 0
  const answers = createOnce(cache.answers)
  const once = (parts: readonly string[], run: () => Promise<Uint8Array>) => answers(parts, run, () => false)
  const ask = (failed: boolean) =>
    askProgram({ once }, ['helm', `${failed}`], async () => {
      runs += 1
      return { failed, notes: [`a\nb ${runs}`], output: new TextEncoder().encode('\nx: 1\n{"failed":true') }
    })
  return { ask, once, kept, runs: () => runs }
}

test('IC8 IC11 what a program made outlives the process, what it refused is known in this one only', async () => {
  const first = openCache()
  const made = { failed: false, notes: ['a\nb 1'], output: new TextEncoder().encode('\nx: 1\n{"failed":true') }
  expect(await first.ask(false)).toEqual(made)
  expect(await first.ask(false)).toEqual(made)
  expect(await first.ask(true)).toMatchObject({ failed: true, notes: ['a\nb 2'] })
  expect(await first.ask(true)).toMatchObject({ failed: true, notes: ['a\nb 2'] })
  expect(first.runs()).toBe(2)
  const next = openCache(first.kept)
  expect(await next.ask(false)).toEqual(made)
  expect(next.runs()).toBe(0)
  expect(await next.ask(true)).toMatchObject({ failed: true, notes: ['a\nb 1'] })
})

test('IC8 a program that was ended has no answer: all who wait hear why, and the next one runs it again', async () => {
  const { once, kept } = openCache()
  const stop = { kind: 'stopped' as const, why: 'ended' as const, message: 'helm was ended from outside', stderr: '' }
  const ask = () => askProgram({ once }, ['helm'], () => Promise.reject(new ProgramStopped(stop)))
  expect(await Promise.all([ask(), ask()])).toEqual([stop, stop])
  expect(await askProgram({ once }, ['helm'], async () => ({ failed: false, notes: null, output: new Uint8Array() }))).toMatchObject({
    failed: false,
  })
  expect(kept.size).toBe(1)
})

test.each([
  ['ended', true],
  ['time', true],
  ['memory', false],
] as const)('IC14 who waited for a program that another render ran is tried again as well: %s, %p', async (why, late) => {
  const stop = { kind: 'stopped' as const, why, message: 'helm was stopped', stderr: '' }
  const exec = async (job: RenderJob) => {
    const answer = await askProgram(job, ['helm'], () => Promise.reject(new Error('another render runs it')))
    return { kind: 'failed' as const, problems: [{ path: 'a', message: 'kind' in answer ? answer.message : '' }] }
  }
  const none = () => Promise.reject(new Error('not this one'))
  const deps = {
    renderers: { raw: none, helm: none, kustomize: none, typescript: none, exec },
    sandbox: { run: none, version: async () => null },
    once: () => Promise.reject(new ProgramStopped(stop)),
    signal: new AbortController().signal,
  }
  const opened = { tree: memoryTree({ 'app/a': 'x' }), root: 'app', version: 'c'.repeat(40) }
  const outcome = await runPipeline(deps, {
    ...{ id: { project: 'default', service: 'shop' }, namespace: 'web', cluster: null, configs: new Map() },
    render: { exec: { command: 'helm', args: [], inputs: [] } },
    sources: [{ name: undefined, label: 's', render: undefined, filesOnly: false, opened }],
    settings: { config: { values: {}, secrets: new Set<string>() }, helmValues: [], patches: [] },
  })
  expect(outcome.result).toMatchObject({ kind: 'failed' })
  expect(outcome.late).toBe(late)
})
