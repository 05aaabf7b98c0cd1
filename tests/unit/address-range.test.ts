// Which addresses a source may be at.
import { describe, expect, test } from 'bun:test'
import { outboundProxy } from '../../server/sources/address/proxy.ts'
import { checkAddress, parseIp, parseRange, parseRanges } from '../../server/sources/address/range.ts'
import { naming } from '../support/naming.ts'

const verdict = (text: string, allowed = '') => {
  const address = parseIp(text)
  return address === null ? 'no address' : (checkAddress(address, parseRanges(allowed).ranges) ?? 'ok')
}

test.each([
  ['8.8.8.8', 'ok'],
  ['172.15.255.255', 'ok'],
  ['172.16.0.0', '172.16.0.0/12'],
  ['172.31.255.255', '172.16.0.0/12'],
  ['172.32.0.0', 'ok'],
  ['9.255.255.255', 'ok'],
  ['10.0.0.0', '10.0.0.0/8'],
  ['11.0.0.0', 'ok'],
  ['192.168.1.1', '192.168.0.0/16'],
  ['127.8.9.1', '127.0.0.0/8'],
  ['0.0.0.0', '0.0.0.0/8'],
  ['100.63.255.255', 'ok'],
  ['100.64.0.0', '100.64.0.0/10'],
  ['100.128.0.0', 'ok'],
  ['100.100.100.200', '100.100.100.200/32'],
  ['169.254.169.254', '169.254.0.0/16'],
  ['168.63.129.16', '168.63.129.16/32'],
  ['224.0.0.1', '224.0.0.0/4'],
  ['255.255.255.255', '240.0.0.0/4'],
  ['198.19.255.255', '198.18.0.0/15'],
  ['2606:4700::6810:1', 'ok'],
  ['::1', '::1/128'],
  ['::', 'not a public'],
  ['fe80::1', 'fe80::/10'],
  ['fd12:3456::1', 'fc00::/7'],
  ['fd00:ec2::254', 'fd00:ec2::/32'],
  ['ff02::1', 'ff00::/8'],
  ['2001:db8::1', '2001:db8::/32'],
  ['2001:0:53aa::1', '2001::/23'],
  ['4000::1', 'not a public'],
  ['::ffff:127.0.0.1', '127.0.0.0/8'],
  ['::ffff:a00:1', '10.0.0.0/8'],
  ['::ffff:8.8.8.8', 'ok'],
  ['::7f00:1', 'not a public'],
  ['64:ff9b::10.0.0.1', '10.0.0.0/8'],
  ['64:ff9b::8.8.8.8', 'ok'],
  ['64:ff9b:1::8.8.8.8', 'not a public'],
  ['2002:7f00:1::', '127.0.0.0/8'],
  ['2002:808:808::', 'ok'],
] as const)('SO1 %s: %s', (text, expected) => expect(verdict(text)).toEqual(naming(expected)))

test.each([
  ['10.1.2.3', '10.0.0.0/8', 'ok'],
  ['10.1.2.3', '10.1.2.3', 'ok'],
  ['10.1.2.4', '10.1.2.3', '10.0.0.0/8'],
  ['::ffff:10.1.2.3', '10.0.0.0/8', 'ok'],
  ['127.0.0.1', '10.0.0.0/8, 127.0.0.0/8', 'ok'],
  ['10.1.2.3', '0.0.0.0/0', 'ok'],
  ['fd12::1', 'fd12::/16', 'ok'],
  ['169.254.169.254', '0.0.0.0/0', '169.254.0.0/16'],
  ['169.254.169.254', '169.254.0.0/16', 'ok'],
  ['100.100.100.200', '100.64.0.0/10', '100.100.100.200/32'],
  ['100.100.100.201', '100.64.0.0/10', 'ok'],
] as const)('SO2 %s where %s is allowed: %s', (text, allowed, expected) => expect(verdict(text, allowed)).toEqual(naming(expected)))

test.each([
  '1.2.3',
  '01.2.3.4',
  '0x7f.0.0.1',
  '2130706433',
  '256.1.1.1',
  '1.2.3.4.5',
  '::1%lo',
  '1::2::3',
  ':1',
  '1:2:3:4:5:6:7',
  '1:2:3:4:5:6:7:8:9',
  'g::',
  '::1.2.3',
  '::1.2.3.04',
  '',
])('SO1 %p is not a plain address', (text) => expect(parseIp(text)).toBeNull())

test.each(['10.0.0.1/8', '10.0.0.0/33', '10.0.0.0/', '10.0.0.0/8/8', 'localhost', 'fd00::/129', '10.0.0.0/-1', '10/8'])(
  'SO2 %p is no range',
  (text) => expect(parseRange(text)).toBeNull(),
)

test('SO2 everything that is no range is named', () => {
  expect(parseRanges(' 10.0.0.0/8,, host ,fd00::/8,1.2.3.4/31').wrong).toEqual(['host'])
  expect(parseRanges('1.2.3.5/31,host').wrong).toEqual(['1.2.3.5/31', 'host'])
  expect(parseRanges('').ranges).toEqual([])
})

describe('the outbound proxy of the environment', () => {
  const env = { HTTPS_PROXY: 'http://proxy:1', http_proxy: 'http://small:1', HTTP_PROXY: 'http://large:1' }
  test.each([
    ['https://git.example.com/', '', 'http://proxy:1'],
    ['http://git.example.com/', '', 'http://small:1'],
    ['https://git.example.com/', 'example.com', null],
    ['https://git.example.com/', '.example.com', null],
    ['https://git.example.com/', '*.example.com', null],
    ['https://notexample.com/', 'example.com', 'http://proxy:1'],
    ['https://git.example.com/', 'example.com:8443', 'http://proxy:1'],
    ['https://git.example.com:8443/', 'example.com:8443', null],
    ['https://git.example.com/', 'other, *', null],
    ['https://[fd00::1]/', 'fd00::1', null],
    ['https://[fd00::1]:8443/', '[fd00::1]:8443', null],
  ] as const)('SO3 %s with NO_PROXY %p goes by %p', (url, without, expected) => {
    expect(outboundProxy({ ...env, NO_PROXY: without })(new URL(url))).toBe(expected)
  })
  test('SO3 without one requests go directly', () => expect(outboundProxy({})(new URL('https://a.example/'))).toBeNull())
})
