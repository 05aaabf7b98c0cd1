import { expect, test } from 'bun:test'
import { splitUrl } from '../../server/http/request-path.ts'

test.each([
  ['http://host/agent/v1/desired', '/agent/v1/desired', ''],
  ['http://host:80/agent/v1/desired?cursor=a&wait=1', '/agent/v1/desired', 'cursor=a&wait=1'],
  ['https://[::1]:443/a?', '/a', ''],
  ['http://host/a?b?c=/d', '/a', 'b?c=/d'],
  ['http://host/', '/', ''],
  ['http://host', '/', ''],
  ['http://host//agent/v1/x', '//agent/v1/x', ''],
  ['http://host/%61gent/v1/x', '/%61gent/v1/x', ''],
  ['http://host/agent/../api/v1', '/agent/../api/v1', ''],
])('%s is compared as it stands', (url, path, query) => expect(splitUrl(url)).toEqual({ path, query }))
