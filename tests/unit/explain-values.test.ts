import { expect, test } from 'bun:test'
import { explainValues } from '../../server/render/explain-values.ts'

const shown = (text: string) => `<${text.length}>`

test('CG9 each effective variable has the level that it comes from, and those below it', () => {
  const layers = [
    {
      from: 'Config/shop',
      values: { color: 'blue', db: { host: 'a', port: 1 }, password: 'hunter2', gone: 1 },
      secrets: new Set(['password']),
    },
    { from: 'service', values: { color: 'green', gone: null } },
    { from: 'overrides[1]', values: { db: { port: 2 }, hosts: ['x'] } },
    { from: 'cluster', values: { color: 'red', 'a b': {} } },
  ]
  expect(explainValues(layers, shown)).toEqual([
    { path: '["a b"]', value: {}, secret: false, from: 'cluster', over: [] },
    { path: 'color', value: 'red', secret: false, from: 'cluster', over: ['Config/shop', 'service'] },
    { path: 'db.host', value: 'a', secret: false, from: 'Config/shop', over: [] },
    { path: 'db.port', value: 2, secret: false, from: 'overrides[1]', over: ['Config/shop'] },
    { path: 'hosts', value: ['x'], secret: false, from: 'overrides[1]', over: [] },
    { path: 'password', value: '<7>', secret: true, from: 'Config/shop', over: [] },
  ])
})
