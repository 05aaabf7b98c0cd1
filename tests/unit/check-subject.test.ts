// scripts/check-subject, which lefthook runs on the message of each commit.
import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../support/source-files.ts'
import { tempDir } from '../support/temp-dir.ts'

const FILE = join(tempDir(), 'COMMIT_EDITMSG')

/** The exit code, and the problem. */
function check(message: string): [exitCode: number, problem: string] {
  writeFileSync(FILE, message)
  const { exitCode, stderr } = Bun.spawnSync([join(ROOT, 'scripts/check-subject'), FILE])
  return [exitCode, /^commit subject: (.*)/.exec(stderr.toString())?.[1] ?? '']
}

const AT_72 = `store: ${'x'.repeat(65)}`

test.each([
  ['an area and an imperative', 'store: index statuses by cluster and service\n'],
  ['two areas', 'access, api: refuse tokens without a role\n'],
  ['an area with a path', 'docs/how-to: explain quiet hours\n'],
  ['an imperative that ends like a participle', 'agent: bring back the outbox\n'],
  ['a body, trailers and comments', '# a comment\n\nstore: index statuses\n\nA sentence. Another one.\n# On branch main\n'],
  ['72 characters', AT_72],
  ['72 characters of which one has more bytes', `${AT_72.slice(0, -1)}…`],
  ['a merge', "Merge branch 'main' into agent\n"],
  ['a fixup', 'fixup! store: index statuses\n'],
])('accepts %s', (_, message) => expect(check(message)).toEqual([0, '']))

test.each([
  ['an empty message', '\n# only a comment\n', 'is empty'],
  ['73 characters', `${AT_72}x`, 'has more than 72 characters'],
  ['no area', 'index statuses\n', 'does not begin with an area, such as "agent: "'],
  ['an area in capitals', 'Store: index statuses\n', 'does not begin with an area, such as "agent: "'],
  ['an area alone', 'store: \n', 'does not begin with an area, such as "agent: "'],
  ['a full stop', 'store: index statuses.\n', 'ends with a full stop'],
  ['a capital after the area', 'store: Index statuses\n', '"Index" is not a verb in lower case'],
  ['an article', 'store: the index of statuses\n', '"the" is not a verb'],
  ['a past tense', 'store: indexed statuses\n', '"indexed" is not an imperative'],
  ['a gerund', 'store: indexing of statuses\n', '"indexing" is not an imperative'],
  ['a third person', 'store: adds an index\n', '"adds" is not an imperative'],
])('refuses %s', (_, message, problem) => expect(check(message)).toEqual([1, problem]))

test('exits with 2 without a file', () => {
  expect(Bun.spawnSync([join(ROOT, 'scripts/check-subject')]).exitCode).toBe(2)
})
