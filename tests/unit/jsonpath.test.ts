// `-o jsonpath=…` against kubectl: each line below is what kubectl 1.32 prints for the Pod, and a kubectl on this
// machine is asked again.
import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { compareValues, jsonPathText, parseJsonPath } from '../../server/cli/printing/jsonpath.ts'
import { tempDir } from '../support/temp-dir.ts'

const POD = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web-10', namespace: 'shop', labels: { app: 'web', 'example.com/tier': 'front & <back>' }, annotations: {} },
  spec: {
    containers: [
      { name: 'a', image: 'nginx:1', ports: [{ containerPort: 80 }, { containerPort: 8080, name: 'alt' }] },
      { name: 'b', image: 'redis:7', ports: [{ containerPort: 6379 }], env: [{ name: 'X', value: '1' }] },
      { name: 'c', image: 'busybox' },
    ],
    terminationGracePeriodSeconds: 30,
    hostNetwork: true,
    nodeSelector: { zone: 'b', arch: 'amd64' },
  },
}

/** Template, and the output of kubectl. */
const GOLDEN: readonly [string, string][] = [
  ['{.metadata.name}', 'web-10'],
  ['{$.metadata.name}', 'web-10'],
  ['{@.metadata.name}', 'web-10'],
  ['{.metadata.labels}', '{"app":"web","example.com/tier":"front \\u0026 \\u003cback\\u003e"}'],
  ['{.metadata.labels.example\\.com/tier}', 'front & <back>'],
  ["{.metadata.labels['example\\.com/tier']}", 'front & <back>'],
  ["{.metadata['name']}", 'web-10'],
  ["{['metadata'].name}", 'web-10'],
  ['{.spec.containers[0].name}', 'a'],
  ['{.spec.containers[-1].name}', 'c'],
  ['{.spec.containers[*].name}', 'a b c'],
  ['{.spec.containers[0:2].name}', 'a b'],
  ['{.spec.containers[1:].name}', 'b c'],
  ['{.spec.containers[:1].name}', 'a'],
  ['{.spec.containers[-2:].name}', 'b c'],
  ['{.spec.containers[0:3:2].name}', 'a c'],
  ['{.spec.containers[::2].name}', 'a c'],
  ['{.spec.containers[0,2].name}', 'a c'],
  ["{.spec.containers[0]['name','image']}", 'a nginx:1'],
  ["{.metadata['name','namespace']}", 'web-10 shop'],
  ['{.spec.containers[?(@.name=="b")].image}', 'redis:7'],
  ["{.spec.containers[?(@.name=='b')].image}", 'redis:7'],
  ['{.spec.containers[?(@.name!="b")].image}', 'nginx:1 busybox'],
  ['{.spec.containers[?(@.ports)].name}', 'a b'],
  ['{.spec.containers[?(@.ports[0].containerPort>80)].name}', 'b'],
  ['{.spec.containers[?(@.ports[0].containerPort==80)].name}', 'a'],
  ['{.spec.containers[?(@.env[*].name=="X")].name}', 'b'],
  ['{.spec.containers[*].ports[*].containerPort}', '80 8080 6379'],
  ['{..containerPort}', '80 8080 6379'],
  ['{.spec..name}', 'a alt b X c'],
  ['{range .spec.containers[*]}{.name}{"\\t"}{.image}{"\\n"}{end}', 'a\tnginx:1\nb\tredis:7\nc\tbusybox\n'],
  ['{range .spec.containers[*]}{.name}={.image},{end}', 'a=nginx:1,b=redis:7,c=busybox,'],
  ['{range .spec.containers[*]}{range .ports[*]}{.containerPort} {end};{end}', '80 8080 ;6379 ;;'],
  ['name: {.metadata.name}, ns: {.metadata.namespace}', 'name: web-10, ns: shop'],
  ['{.metadata.name}{"\\n"}', 'web-10\n'],
  ["{.metadata.name}{'\\n'}", 'web-10\n'],
  ['{.metadata.name} {.metadata.namespace}', 'web-10 shop'],
  ['{.missing}', ''],
  ['{.missing.deeper}', ''],
  ['{.metadata.missing}x', 'x'],
  ['{.spec.terminationGracePeriodSeconds}', '30'],
  ['{.spec.hostNetwork}', 'true'],
  ['{.spec.nodeSelector}', '{"arch":"amd64","zone":"b"}'],
  ['{.spec.containers[1]}', '{"env":[{"name":"X","value":"1"}],"image":"redis:7","name":"b","ports":[{"containerPort":6379}]}'],
  ['{.metadata.annotations}', '{}'],
  ['{.spec.containers[?(@.name=="zzz")].image}', ''],
  ["{.spec.containers[*]['name','image']}", 'a b c nginx:1 redis:7 busybox'],
  ['{.metadata.name}}', 'web-10}'],
  ['{ .metadata.name }', 'web-10'],
  ['{.spec.containers.name}', ''],
  ['{.spec.containers[?(@.image=="nginx:1")][\'name\']}', 'a'],
  ['{.spec.containers[?(.name=="b")].image}', 'redis:7'],
  ['{.spec.containers[?(@.name=="b" )].image}', 'redis:7'],
  ['{.items[*]}', ''],
  ['{.spec.containers[?(@.name>"a")].name}', 'b c'],
  ['{.spec.containers[0].ports[?(@.name)].name}', 'alt'],
  ['{..image}', 'nginx:1 redis:7 busybox'],
]
const REFUSED: readonly string[] = ['{.metadata.name', '{.spec.containers[a]}', '{.spec.containers[0}', '{.spec.containers[?(@.name=="b")}']

test.each(GOLDEN)('CL35 %s prints what kubectl prints', (template, output) => {
  expect(jsonPathText(parseJsonPath(template), POD)).toBe(output)
})

test.each(REFUSED)('CL35 %s is refused, as by kubectl, with the place', (template) => {
  expect(() => parseJsonPath(template)).toThrow(/^invalid JSONPath ".*at character \d+$/)
})

const kubectl = Bun.which('kubectl')
test.if(kubectl !== null)('CL35 the lines above are what the kubectl of this machine prints', async () => {
  const file = join(tempDir(), 'pod.json')
  writeFileSync(file, JSON.stringify(POD))
  const ask = async (template: string) => {
    const child = Bun.spawn([kubectl ?? '', 'label', '--local', '-f', file, '-o', `jsonpath=${template}`, 'app=web', '--overwrite'], {
      stderr: 'ignore',
    })
    return { template, output: await new Response(child.stdout).text(), code: await child.exited }
  }
  const answers = await Promise.all(GOLDEN.map(([template]) => ask(template)))
  expect(answers).toEqual(GOLDEN.map(([template, output]) => ({ template, output, code: 0 })))
  expect((await Promise.all(REFUSED.map(ask))).every(({ code }) => code !== 0)).toBe(true)
})

test('a path without braces is taken; an index out of range is empty', () => {
  for (const path of ['.metadata.name', '{.metadata.name}', 'metadata.name']) expect(jsonPathText(parseJsonPath(path), POD)).toBe('web-10')
  expect(jsonPathText(parseJsonPath('{.spec.containers[7].name}'), POD)).toBe('')
  expect(() => parseJsonPath('')).toThrow('invalid JSONPath')
  expect(() => parseJsonPath('{range .items[*]}{.x}')).toThrow('no {end}')
})

test('values are ordered as people count, what is missing first', () => {
  expect(['node-10', undefined, 'node-2', 'a'].toSorted(compareValues)).toEqual(['a', 'node-2', 'node-10', undefined])
  expect([10, 9, -1].toSorted(compareValues)).toEqual([-1, 9, 10])
  expect(compareValues(undefined, 'a')).toBeLessThan(0)
})
