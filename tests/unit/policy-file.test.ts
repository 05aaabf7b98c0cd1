// The policy file of a site: read at the start, read again, and kept when it breaks.
import { expect, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PolicyFile, parsePolicy, policyText } from '../../agent/policy-file.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { tempDir } from '../support/temp-dir.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const GOOD = 'namespaces: [web-*]\ndeny: [prune]\n'

test.each([
  ['an unknown rule', 'namspaces: [a]\n'],
  ['a wrong verb', 'deny: [everything]\n'],
  ['no document', ''],
  ['two documents', 'deny: []\n---\ndeny: []\n'],
  ['no YAML', 'deny: [\n'],
])('LX4 %s is told with the file', (_, text) => {
  const read = parsePolicy(text, 'policy.yaml')
  expect(read.kind === 'wrong' ? read.problems[0]?.path : '').toStartWith('policy.yaml')
})

test('LX4 the agent refuses to start with a file that is missing or wrong', () => {
  const path = join(tempDir(), 'policy.yaml')
  expect(() => new PolicyFile(path, silentLogger)).toThrow('policy.yaml')
  writeFileSync(path, 'deny: 5\n')
  expect(() => new PolicyFile(path, silentLogger)).toThrow()
})

test('LX4 a change is in force within seconds; a broken or missing file keeps the last good policy and says so', async () => {
  const path = join(tempDir(), 'policy.yaml')
  writeFileSync(path, GOOD)
  const file = new PolicyFile(path, silentLogger)
  const clock = createVirtualClock()
  const stop = new AbortController()
  const told: boolean[] = []
  const following = file.follow(clock, stop.signal, (isPolicy) => told.push(isPolicy))
  const first = file.policy()
  await clock.advance(5_000)
  expect([told, file.policy() === first]).toEqual([[], true])
  writeFileSync(path, 'namespaces: [shop]\n')
  await clock.advance(5_000)
  expect([told, file.policy(), file.report().problem]).toEqual([[true], { namespaces: ['shop'] }, null])
  writeFileSync(path, 'namespaces: shop\n')
  await clock.advance(5_000)
  expect([told, file.policy()]).toEqual([[true, false], { namespaces: ['shop'] }])
  expect(file.report().problem).toContain('namespaces')
  rmSync(path)
  await clock.advance(5_000)
  expect(file.policy()).toEqual({ namespaces: ['shop'] })
  expect(file.report().problem).toContain('policy.yaml')
  writeFileSync(path, 'namespaces: [shop]\n')
  await clock.advance(5_000)
  expect(file.report().problem).toBeNull()
  stop.abort()
  await following
})

test('LX1 the rules in one line', () => {
  expect(policyText({ namespaces: ['web-*', 'shop'], deny: ['prune'] })).toBe('namespaces web-*, shop; deny prune')
  expect(policyText({})).toBe('allows everything')
})
