// An address that is no page.
import { Head } from '../parts/head.tsx'
import { Empty } from '../parts/states.tsx'
import { pages } from '../state/place.ts'
import { text } from '../words/first.ts'

export function NotFound() {
  return (
    <>
      <Head title={text.states.notFound} />
      <div class="panel">
        <Empty title={text.states.notFound} next={text.states.notFoundNext}>
          <a class="button" href={pages.fleet()}>
            {text.nav.fleet}
          </a>
        </Empty>
      </div>
    </>
  )
}
