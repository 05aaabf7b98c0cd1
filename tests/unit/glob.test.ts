// RN11: globs of render.directory, as Argo CD matches them (gobwas/glob without separators).
import { expect, test } from 'bun:test'
import { compileGlob, wrongGlobs } from '../../server/render/glob.ts'
import { renderSchema } from '../../shared/model/render.ts'

test.each([
  ['*.yaml', 'a.yaml', true],
  ['*.yaml', 'below/a.yaml', true],
  ['*.yaml', 'a.yml', false],
  ['a.yaml', 'axyaml', false],
  ['below/**', 'below/a/b.yaml', true],
  ['?.yaml', 'ab.yaml', false],
  ['a?b', 'a/b', true],
  ['{config.json,env-usw2/*}', 'config.json', true],
  ['{config.json,env-usw2/*}', 'env-usw2/x.yaml', true],
  ['{config.json,env-usw2/*}', 'env-use1/x.yaml', false],
  ['{a,{b,c}d}.yaml', 'cd.yaml', true],
  ['a,b', 'a,b', true],
  ['[a-c].yaml', 'b.yaml', true],
  ['[!a-c].yaml', 'b.yaml', false],
  ['[!a-c].yaml', 'd.yaml', true],
  ['[^.]', '^', true],
  ['\\*.yaml', '*.yaml', true],
  ['\\*.yaml', 'a.yaml', false],
  ['^a$(b|c).+', '^a$(b|c).+', true],
  ['größe.yaml', 'größe.yaml', true],
] as const)('%s matches %s: %p', (glob, path, expected) => expect(compileGlob(glob)(path)).toBe(expected))

test.each(['{a', '[a', '[]', 'a\\'])('%s is malformed', (glob) => {
  expect(wrongGlobs({ directory: { include: 'ok', exclude: glob } }, 'spec.render').map(({ path }) => path)).toEqual([
    'spec.render.directory.exclude',
  ])
})

test('128 characters of any kind, and no more', () => {
  const isTaken = (glob: string) => renderSchema.safeParse({ directory: { include: glob } }).success
  expect([isTaken('.'.repeat(128)), isTaken('.'.repeat(129))]).toEqual([true, false])
  expect(compileGlob('.'.repeat(128))('.'.repeat(128))).toBe(true)
})

test('a hostile glob is matched in time proportional to the path', () => {
  expect(compileGlob('*a'.repeat(64))(`${'a'.repeat(1_000)}b`)).toBe(false)
})
