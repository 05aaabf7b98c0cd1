// A pipe whose reader goes away, with the real programs.
import { expect, test } from 'bun:test'
import { join } from 'node:path'

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
