// A pipe whose reader goes away, with the real programs.
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { createTestAdmin, repositoryDoc, serviceDoc } from '../support/admin-app.ts'

const ROOT = join(import.meta.dir, '../..')

test.each([
  ['server/main.ts', '--help'],
  ['server/main.ts', 'version --client'],
  ['server/main.ts', 'explain service -R'],
  ['agent/main.ts', '--help'],
])('CL16 %s %s into a pipe that nobody reads ends without a word', async (program, argv) => {
  const child = Bun.spawn(['bash', '-o', 'pipefail', '-c', `"$0" "$1" ${argv} | true`, process.execPath, join(ROOT, program)], {
    stdout: 'pipe',
    stderr: 'pipe',
  })
  expect([await child.exited, await new Response(child.stderr).text()]).toEqual([0, ''])
})

test.each(['get services -w -o name', 'events -f -o json'])(
  'CL16 `skerry %s | head -1` ends when its reader went, not with the next output',
  async (argv) => {
    const admin = await createTestAdmin()
    const server = Bun.serve({ hostname: '127.0.0.1', port: 0, idleTimeout: 60, fetch: (request) => admin.app.fetch(request) })
    try {
      await admin.call('POST', '/api/v1/apply', { resources: [repositoryDoc('apps'), serviceDoc('web')] })
      const event = {
        atMs: 1,
        type: 'Normal',
        reason: 'R',
        message: 'm',
        cluster: null,
        project: null,
        service: null,
        object: null,
      } as const
      await admin.store.appendEvents([event])
      const child = Bun.spawn(
        ['bash', '-o', 'pipefail', '-c', `"$0" "$1" ${argv} | head -1`, process.execPath, join(ROOT, 'server/main.ts')],
        {
          env: { ...process.env, SKERRY_SERVER: server.url.href, SKERRY_TOKEN: admin.token },
          stdout: 'pipe',
          stderr: 'pipe',
        },
      )
      const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
      expect([await child.exited, out.trim().split('\n').length, err]).toEqual([0, 1, ''])
    } finally {
      await server.stop(true)
      await admin.store.close()
    }
  },
)

test('CL16 a pipe that is read on ends nothing, and does not keep a command from ending', async () => {
  const child = Bun.spawn(
    ['bash', '-o', 'pipefail', '-c', '"$0" "$1" version --client | cat', process.execPath, join(ROOT, 'server/main.ts')],
    {
      stdout: 'pipe',
    },
  )
  expect([await child.exited, (await new Response(child.stdout).text()) !== '']).toEqual([0, true])
})
