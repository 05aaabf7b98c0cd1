// One question to several clusters by the command line: what is printed while answers arrive, and what at the end.
import { expect, test } from 'bun:test'
import { serviceDoc } from '../support/admin-app.ts'
import { runCliWith } from '../support/cli-run.ts'
import { naming } from '../support/naming.ts'

type Answers = Record<string, { status?: number; lines?: object[]; held?: Promise<unknown> }>
const END = { t: 'end' }
const object = (colour: string) => ({ t: 'object', object: { kind: 'ConfigMap', data: { colour } }, masked: [] })

function serverOf(answers: Answers, asked: unknown[] = []) {
  return async (url: string, init?: RequestInit): Promise<Response> => {
    const cluster = /\/clusters\/([^/]+)\/ask$/.exec(url)?.[1] ?? ''
    const { status = 200, lines = [], held } = answers[cluster] ?? { status: 404 }
    asked.push(JSON.parse(String(init?.body)))
    await held
    if (status !== 200)
      return Response.json({ code: 'cluster_offline', detail: `cluster ${cluster} has been offline since 2026-11-24` }, { status })
    return new Response(lines.map((line) => `${JSON.stringify(line)}\n\n`).join('')) // empty lines keep connections open
  }
}
const cli = (argv: string, answers: Answers, asked: unknown[] = []) =>
  runCliWith(argv.split(' '), {
    fetch: serverOf(answers, asked) as never,
    env: { SKERRY_SERVER: 'http://localhost', SKERRY_TOKEN: 'skt.x.y' },
  })

test('AK4 answers are printed as they arrive, late clusters are named, and those without an answer at the end', async () => {
  const late = Promise.withResolvers<void>()
  let beforeLate = ''
  const answers: Answers = {
    a: { lines: [object('blue'), END] },
    b: { status: 503 },
    c: { lines: [object('red'), END], held: late.promise },
  }
  const result = await runCliWith('get object cm/shop/conf --cluster a,b,c -o json'.split(' '), {
    fetch: serverOf(answers) as never,
    env: { SKERRY_SERVER: 'http://localhost', SKERRY_TOKEN: 'skt.x.y' },
    onPrinted: ({ out, err }) => {
      if (beforeLate !== '' || !out.includes('blue') || !err.includes('waiting for')) return
      beforeLate = out
      late.resolve()
    },
  })
  expect(beforeLate).not.toContain('red')
  expect(result.out.trim().split('\n').map((line) => JSON.parse(line).cluster)).toEqual(['a', 'c']) // biome-ignore format: short
  expect([result.code, result.err]).toEqual([1, expect.stringContaining('b: ')])
  expect(result.err).toEqual(naming('1 of 3 clusters'))
})

test('AK4 a followed log that prints is not named as late, and all clusters are followed at once', async () => {
  const line = (text: string) => ({ t: 'log', pod: 'p', container: 'c', text: `${text}\n` })
  const names = Array.from({ length: 20 }, (_, index) => `c${index}`)
  const [release, printed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const asked: unknown[] = []
  const fetch = async (url: string) => {
    const cluster = /clusters\/([^/]+)\/ask/.exec(url)?.[1] ?? ''
    asked.push(cluster)
    const body = new ReadableStream<Uint8Array>({
      async start(stream) {
        if (cluster !== 'c7') stream.enqueue(new TextEncoder().encode(`${JSON.stringify(line(cluster))}\n`))
        await release.promise
        stream.enqueue(new TextEncoder().encode(`${JSON.stringify(END)}\n`))
        stream.close()
      },
    })
    return new Response(body)
  }
  const result = await runCliWith(`logs pod/shop/p -f --cluster ${names.join()}`.split(' '), {
    fetch: fetch as never,
    env: { SKERRY_SERVER: 'http://localhost', SKERRY_TOKEN: 'skt.x.y' },
    sleep: () => printed.promise,
    onPrinted: ({ out, err }) => {
      if (out.split('\n').length > 19) printed.resolve()
      if (err.includes('yet from')) release.resolve()
    },
  })
  expect([asked.length, result.out.trim().split('\n').length, result.err]).toEqual([20, 19, 'no log lines yet from c7\n'])
  const many = Array.from({ length: 65 }, (_, index) => `c${index}`).join()
  expect(await cli(`logs pod/shop/p -f --cluster ${many}`, {})).toMatchObject({
    code: 2,
    err: expect.stringContaining('at most 64 clusters'),
  })
})

test('AK6 a server that is busy is asked again after the time that it names', async () => {
  const waits: number[] = []
  const busy = { type: 'about:blank', title: 'Too many requests.', status: 429, code: 'too_many_requests', retryAfterMs: 700 }
  const counts = new Map<string, number>()
  const fetch = async (url: string) => {
    const cluster = /clusters\/([^/]+)\/ask/.exec(url)?.[1] ?? ''
    const count = (counts.get(cluster) ?? 0) + 1
    counts.set(cluster, count)
    if (cluster === 'b' || count < 3) return Response.json(busy, { status: 429 })
    return new Response(`${JSON.stringify(object('blue'))}\n${JSON.stringify(END)}\n`)
  }
  const { code, out, err } = await runCliWith('get object cm/shop/conf --cluster a,b,c -o name'.split(' '), {
    fetch: fetch as never,
    env: { SKERRY_SERVER: 'http://localhost', SKERRY_TOKEN: 'skt.x.y' },
    sleep: async (ms) => void waits.push(ms),
  })
  expect([code, out.split('\n').length - 1, err.includes('1 of 3 clusters gave no answer')]).toEqual([1, 2, true])
  expect([...counts]).toEqual([['a', 3], ['b', 12], ['c', 3]]) // biome-ignore format: short
  expect(waits.filter((ms) => ms === 700 || ms === 1_400)).toHaveLength(6)
})

test('AK4 nodes of each cluster are printed when it has answered', async () => {
  const node = (name: string) => ({
    ...{ t: 'node', name, ready: true, version: 'v1.34.0', capacity: {}, allocatable: { pods: '110', cpu: '4', memory: '8Gi' } },
    ...{ requested: { cpu: 1, memory: 0 }, pods: 3, problems: [] },
  })
  const late = Promise.withResolvers<void>()
  const answers: Answers = { a: { lines: [node('a1'), END], held: late.promise }, b: { lines: [node('b1'), END] }, c: { status: 503 } }
  const run = (output: string) =>
    runCliWith(`get nodes --cluster a,b,c${output}`.split(' '), {
      fetch: serverOf(answers) as never,
      env: { SKERRY_SERVER: 'http://localhost', SKERRY_TOKEN: 'skt.x.y' },
      onPrinted: ({ out }) => out.includes('b1') && late.resolve(),
    })
  const { code, out } = await run('')
  expect([
    code,
    out
      .trim()
      .split('\n')
      .map((text) => text.split(/ +/)[0]),
  ]).toEqual([1, ['CLUSTER', 'b', 'a']])
  expect(JSON.parse((await run(' -o json')).out).items.map(({ cluster }: { cluster: string }) => cluster)).toEqual(['a', 'b'])
})

test('AK8 a trial of a proposal goes on where a cluster is offline', async () => {
  const ref = { group: '', kind: 'ConfigMap', namespace: 'shop', name: 'conf' }
  const after = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'conf' } }
  const nobody = { count: 1, first: [] }
  const view = {
    ...{
      project: 'default',
      service: 'web',
      clusters: { compared: 1, differing: 1, failing: 0 },
      objects: { create: 0, change: 1, delete: 0 },
    },
    groups: [{ clusters: nobody, placement: 'kept', objects: [{ action: 'change', name: 'ConfigMap shop/conf', before: null, after }] }],
    ...{ failing: [], warnings: [], notes: [] },
  }
  const asking = serverOf({ a: { status: 503 }, b: { lines: [{ t: 'dryRun', ref, result: 'changed', fields: [] }, END] } })
  const fetch = async (url: string, init?: RequestInit) => (url.endsWith('/diff') ? Response.json(view) : asking(url, init))
  const { code, out, err } = await runCliWith('diff web --live -f - --cluster a,b'.split(' '), {
    stdin: JSON.stringify(serviceDoc('web')),
    fetch: fetch as never,
    env: { SKERRY_SERVER: 'http://localhost', SKERRY_TOKEN: 'skt.x.y' },
  })
  expect([code, out]).toEqual([2, 'b: ConfigMap shop/conf  changed\n'])
  expect(err).toContain('a: ')
  expect(err).toEqual(naming('1 of 2 clusters'))
})

test('AK6 an answer that was cut off says so, and one without an end is a failure', async () => {
  const log = { t: 'log', pod: 'p', container: 'c', text: 'one\n' }
  const cut = await cli('logs pod/shop/p --cluster a', { a: { lines: [log, { t: 'end', truncated: 'bytes' }] } })
  expect([cut.code, cut.out, cut.err]).toEqual([0, 'one\n', 'the answer was cut off at its limit in bytes\n'])
  expect(await cli('logs pod/shop/p --cluster a', { a: { lines: [log] } })).toMatchObject({ code: 1, out: 'one\n' })
})

test('AK5 a refusal of the site is shown with its remedy', async () => {
  const refusal = { t: 'failed', code: 'local_policy', message: 'refused by rule ask.deny: logs', remedy: 'Ask the site.' }
  const { code, err } = await cli('tree deploy/shop/web --cluster a', { a: { lines: [refusal] } })
  expect([code, err]).toEqual([1, expect.stringContaining('ask.deny')])
  expect(err).toContain('hint: Ask the site.')
})

test('AK3 options become the question, confined to the service', async () => {
  const asked: unknown[] = []
  await cli('logs deploy/shop/web -c app --since 2m --tail 5 --previous --service web --cluster a', { a: { lines: [END] } }, asked)
  expect(asked).toEqual([
    {
      question: {
        ...{ kind: 'logs', ref: { group: 'apps', kind: 'Deployment', namespace: 'shop', name: 'web' } },
        ...{ container: 'app', follow: false, previous: true, timestamps: false, sinceSeconds: 120, tailLines: 5 },
      },
      within: { project: 'default', service: 'web' },
    },
  ])
})

test.each([
  ['restart deploy/shop/web --cluster a,b', '--yes'],
  ['tree deploy/shop/web', '--cluster'],
  ['logs widget/shop/web --cluster a', 'API group'],
  ['logs pod/shop/p --cluster a --since soon', '30s'],
])('AK4 %p is invalid and asks nothing', async (argv, hint) => {
  const asked: unknown[] = []
  const { code, err } = await cli(argv, {}, asked)
  expect([code, asked]).toEqual([2, []])
  expect(err).toContain(hint)
})
