import { describe, expect, test } from 'bun:test'
import { bypasses, proxyFor, proxyName } from '../../agent/link/proxy-choice.ts'

describe('SY7 which proxy', () => {
  test.each([
    ['http', 'http://s/', { HTTP_PROXY: 'http://p:1' }, 'http://p:1/'],
    ['http in lower case', 'http://s/', { http_proxy: 'http://p:1' }, 'http://p:1/'],
    ['lower case wins', 'http://s/', { http_proxy: 'http://a:1', HTTP_PROXY: 'http://b:1' }, 'http://a:1/'],
    ['an empty one is none', 'http://s/', { http_proxy: '', HTTP_PROXY: 'http://b:1' }, 'http://b:1/'],
    ['https has its own', 'https://s/', { HTTP_PROXY: 'http://p:1' }, null],
    ['https', 'https://s/', { HTTPS_PROXY: 'http://u:pw@p:1' }, 'http://u:pw@p:1/'],
    ['without a scheme', 'https://s/', { https_proxy: 'p:3128' }, 'http://p:3128/'],
    ['a proxy over TLS', 'https://s/', { https_proxy: 'https://p' }, 'https://p/'],
    ['NO_PROXY', 'https://s/', { HTTPS_PROXY: 'http://p:1', NO_PROXY: 's' }, null],
    ['no_proxy', 'https://s/', { HTTPS_PROXY: 'http://p:1', no_proxy: 's' }, null],
    ['nothing set', 'https://s/', {}, null],
  ] as const)('%s', (_, url, env, expected) => expect(proxyFor(new URL(url), env)).toBe(expected))

  test.each([['socks5://p:1080'], ['http://'], ['://u:secret@p']])('%s is refused without being repeated', (value) => {
    try {
      proxyFor(new URL('https://s/'), { HTTPS_PROXY: value })
      throw new Error('taken')
    } catch (error) {
      expect(String(error)).toContain('HTTPS_PROXY is not an http:// or https:// URL')
      expect(String(error)).not.toContain('secret')
    }
  })

  test('a proxy is named without its credentials', () => expect(proxyName('http://me:secret@p:3128/')).toBe('p:3128'))
})

describe('SY7 NO_PROXY', () => {
  test.each([
    ['*', 'https://anything:8443/', true],
    ['example.com', 'https://example.com/', true],
    ['EXAMPLE.com', 'https://Example.COM/', true],
    ['example.com', 'https://skerry.example.com/', true],
    ['example.com', 'https://badexample.com/', false],
    ['.example.com', 'https://skerry.example.com/', true],
    ['.example.com', 'https://example.com/', false],
    ['*.example.com', 'https://a.b.example.com/', true],
    ['*.example.com', 'https://example.com/', false],
    ['example.com:8443', 'https://example.com:8443/', true],
    ['example.com:8443', 'https://example.com/', false],
    ['example.com:443', 'https://example.com/', true],
    ['example.com:80', 'http://example.com/', true],
    ['a.com, b.com', 'https://b.com/', true],
    ['a.com b.com', 'https://b.com/', true],
    ['10.1.2.3', 'http://10.1.2.3/', true],
    ['10.1.2.3', 'http://10.1.2.30/', false],
    ['1.2.3', 'http://10.1.2.3/', false],
    ['10.1.2.3:80', 'http://10.1.2.3/', true],
    ['10.1.2.3:81', 'http://10.1.2.3/', false],
    ['10.0.0.0/8', 'http://10.255.0.1/', true],
    ['10.0.0.0/8', 'http://11.0.0.1/', false],
    ['10.0.0.0/9', 'http://10.128.0.1/', false],
    ['0.0.0.0/0', 'http://8.8.8.8/', true],
    ['10.0.0.0/33', 'http://10.0.0.0/', false],
    ['300.0.0.0/8', 'http://44.0.0.0/', false],
    ['10.0.0.0/8', 'http://ten.example.com/', false],
    ['::1', 'http://[::1]/', true],
    ['[::1]:8080', 'http://[::1]:8080/', true],
    ['[::1]:8080', 'http://[::1]/', false],
    ['fd00::/8', 'http://[fd12:3456::1]/', true],
    ['fd00::/8', 'http://[fe80::1]/', false],
    ['fd00::/8', 'http://10.0.0.1/', false],
    ['2001:db8:0:0::1', 'http://[2001:db8::1]/', true],
    ['', 'https://example.com/', false],
    [' , ,', 'https://example.com/', false],
  ] as const)('%j and %s → %p', (noProxy, url, expected) => expect(bypasses(new URL(url), noProxy)).toBe(expected))
})
