// One question to several clusters by the command line: what is printed while answers arrive, and what at the end.
import { expect, test } from 'bun:test'
import { runCliWith } from '../support/cli-run.ts'

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
  expect(result.err).toContain('1 of 3 clusters gave no answer')
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
