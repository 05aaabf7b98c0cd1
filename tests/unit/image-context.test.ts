// What `docker build` is sent of the clone (.dockerignore), against what the Dockerfiles copy of it. There is no Docker
// here.
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const read = (file: string): string => readFileSync(join(import.meta.dir, '../..', file), 'utf8')
const [first, ...exceptions] = read('.dockerignore').trim().split('\n')
const isSent = (path: string): boolean => exceptions.some((line) => line === `!${path}` || path.startsWith(`${line.slice(1)}/`))
const copied = (file: string): string[] =>
  [...read(file).matchAll(/^COPY (?!--from)(\S+) \S+$/gm)].flatMap(([, path = '']) => (path === '.' ? [] : [path]))

test('BI4 a build is sent what is named, and nothing else of the clone', () => {
  expect([first, ...exceptions.filter((line) => !line.startsWith('!'))]).toEqual(['*'])
})

test.each(['Dockerfile.server', 'Dockerfile.agent'])('BI4 %s copies only what its build is sent', (file) => {
  expect(copied(file).filter((path) => !isSent(path))).toEqual([])
})

test('BI4 the programs that render are built from files that are sent', () => {
  expect(copied('Dockerfile.server')).toContain('tests/render')
})
