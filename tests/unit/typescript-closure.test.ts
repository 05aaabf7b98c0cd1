// What a script may import: how many files, and how large they may be.
import { expect, test } from 'bun:test'
import { importClosure, SCRIPTS_MAX } from '../../server/render/typescript/closure.ts'
import { memoryTree } from '../support/helm-kit.ts'
import { naming } from '../support/naming.ts'

const closureOf = async (files: Readonly<Record<string, string>>) => {
  const { files: found, problems } = await importClosure(memoryTree(files), 'main.ts')
  return { count: found.size, told: problems.map(({ path, message }) => `${path} ${message}`) }
}

test.each([
  [SCRIPTS_MAX - 1, []],
  [SCRIPTS_MAX, ['main.ts imports more than 5000 files']],
] as const)('TS3 a script that imports %d others', async (others, told) => {
  const names = Array.from({ length: others }, (_, at) => `t${at}.txt`)
  const texts = Object.fromEntries(names.map((name) => [name, 'x']))
  expect(await closureOf({ ...texts, 'main.ts': names.map((name) => `import './${name}'`).join('\n') })).toEqual({
    count: SCRIPTS_MAX,
    told: [...told],
  })
})

const MIB = 1024 * 1024
test.each([
  [MIB, []],
  [MIB + 1, [naming('main.ts', 1_048_576)]],
] as const)('TS3 a script of %d bytes', async (bytes, told) => {
  expect((await closureOf({ 'main.ts': `export default []${' '.repeat(bytes - 17)}` })).told).toEqual([...told])
})

// 16 times the text; 8 more for the mapping, and 8 for the list.
const MOST = `a: &a ${'x'.repeat(MIB - 1)}\nb: [${Array.from({ length: 15 }, () => '*a').join(', ')}]\n`
test.each([
  ['16 Mi characters', MOST, []],
  ['one more', `${MOST}c: y\n`, [naming('big.yaml', 16_777_216, 'aliases')]],
] as const)('TS3 YAML whose aliases repeat what is in it: %s', async (_, yaml, told) => {
  expect((await closureOf({ 'main.ts': "import './big.yaml'", 'big.yaml': yaml })).told).toEqual([...told])
})
