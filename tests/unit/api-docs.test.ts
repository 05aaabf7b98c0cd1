// The page at /api/docs.
import { expect, test } from 'bun:test'
import { createTestAdmin } from '../support/admin-app.ts'

const ASSETS = /(?:src|href)="([^"]+)"/g

test('AP28 the page of the API needs no credential, and loads nothing but its own files under a strict policy', async () => {
  const { app } = await createTestAdmin()
  const get = async (path: string) => {
    const answer = await app.fetch(new Request(`http://localhost${path}`))
    return { status: answer.status, type: answer.headers.get('content-type'), headers: answer.headers, text: await answer.text() }
  }
  const page = await get('/api/docs')
  expect([page.status, page.type]).toEqual([200, 'text/html; charset=utf-8'])
  const policy = page.headers.get('content-security-policy') ?? ''
  expect(policy).toStartWith("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'")
  expect(policy).not.toContain('unsafe')
  const assets = [...page.text.matchAll(ASSETS)].map(([, path = '']) => path)
  expect(assets).toEqual(['/api/docs/page.css', '/api/docs/page.js'])
  expect(page.text).not.toMatch(/<script(?![^>]*\ssrc=)|\son\w+=|\sstyle=/)
  for (const path of assets) {
    const { status, text, type } = await get(path)
    expect([status, type]).toEqual([200, path.endsWith('css') ? 'text/css; charset=utf-8' : 'text/javascript; charset=utf-8'])
    expect(text).not.toMatch(/https?:\/\/|innerHTML|insertAdjacentHTML|document\.write|eval\(/)
  }
  expect((await get('/api/docs/other')).status).toBe(401)
  expect((await get('/api/v1/openapi.json')).status).toBe(401)
})
