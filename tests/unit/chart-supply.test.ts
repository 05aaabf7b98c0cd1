// Which Repository serves a chart that another one depends on.
import { describe, expect, test } from 'bun:test'
import { holdsDependency, nearest } from '../../server/ingest/chart-supply.ts'
import { naming } from '../support/naming.ts'

describe('SO20 where a chart that another one depends on may come from', () => {
  const helm = (url: string) => ({ kind: 'helm' as const, spec: { url } })
  const oci = (url: string) => ({ kind: 'oci' as const, spec: { url, tag: 'x' } })
  test.each([
    [helm('https://charts.example.com/a/'), 'https://Charts.example.com/a', true],
    [helm('https://charts.example.com/a'), 'https://charts.example.com/a/', true],
    [helm('https://charts.example.com/a'), 'https://charts.example.com/A', false],
    [helm('https://charts.example.com/a'), 'https://charts.example.com/a/b', false],
    [helm('https://charts.example.com/a'), 'http://charts.example.com/a', false],
    [oci('oci://r.example/charts'), 'oci://r.example/charts', true],
    [oci('oci://r.example/charts/redis'), 'oci://r.example/charts', true],
    [oci('oci://r.example/charts/other'), 'oci://r.example/charts', false],
    [oci('oci://r.example'), 'oci://r.example/charts', false],
    [{ kind: 'git' as const, spec: { url: 'https://charts.example.com/a', ref: 'main' } }, 'https://charts.example.com/a', false],
  ])('%p for %s: %p', (place, repository, expected) => expect(holdsDependency(place, { repository, name: 'redis' })).toBe(expected))
})

test.each([
  ['https://charts.example.com/a', ['https://charts.example.com/stable', 'Repository stable']],
  ['http://charts.example.org/x', ['https://charts.example.org/x', 'Repository slip']],
  ['oci://r.example/chart', ['oci://r.example/charts', 'Repository oci']],
  ['https://elsewhere.example/charts', null],
])('SO20 of a URL that no Repository has the most similar is named: %s', (wanted, expected) => {
  const urls = new Map([
    ['far', 'https://charts.example.com/incubator/more'],
    ['stable', 'https://charts.example.com/stable'],
    ['slip', 'https://charts.example.org/x'],
    ['oci', 'oci://r.example/charts'],
  ])
  expect(nearest(urls, wanted)).toEqual(expected === null ? '' : naming(...expected))
})
