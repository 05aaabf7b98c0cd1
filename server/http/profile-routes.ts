// Profiles of the server process for admins: processor time and memory.
import { Elysia } from 'elysia'
import { z } from 'zod'
import { PROFILE_SECONDS_DEFAULT, PROFILE_SECONDS_MAX, type Profiler } from '../../shared/adapters/profiler.ts'

const seconds = z.coerce.number().int().min(1).max(PROFILE_SECONDS_MAX).default(PROFILE_SECONDS_DEFAULT)

const file = (body: string, name: string): Response =>
  new Response(body, { headers: { 'content-type': 'application/json', 'content-disposition': `attachment; filename="${name}"` } })

const answers = (description: string) => ({
  responses: { 200: { description, content: { 'application/json': { schema: { type: 'object' as const } } } } },
})

export const profileRoutes = (profiler: Profiler) =>
  new Elysia({ prefix: '/profile', tags: ['operation'] })
    .get('/cpu', async ({ query, request }) => file(await profiler.cpu(query.seconds, request.signal), 'skerry.cpuprofile'), {
      query: z.object({ seconds }),
      detail: { summary: 'Processor time of the server by function', ...answers('A profile of V8') },
    })
    .get('/heap', async () => file(await profiler.heap(), 'skerry-heap.json'), {
      detail: { summary: 'Size of the heap of the server and its objects by type', ...answers('Sizes in bytes and counts') },
    })
    .get('/heap-snapshot', async () => file(await profiler.snapshot(), 'skerry.heapsnapshot'), {
      detail: { summary: 'Objects of the heap of the server, without the content of strings', ...answers('A heap snapshot of V8') },
    })
