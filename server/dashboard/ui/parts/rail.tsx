// The rail of pages with their counts, and at its foot the signed-in person and whether the page is live.

import { useLocation } from 'preact-iso'
import { number } from '../format.ts'
import { signOut } from '../state/account.ts'
import { numbers } from '../state/fleet.ts'
import { connection } from '../state/live.ts'
import { useNeeds } from '../state/needs.ts'
import { pages, ROOT } from '../state/place.ts'
import { useServiceCount } from '../state/reads.ts'
import { session } from '../state/session.ts'
import { text } from '../words/first.ts'
import { Icon, type IconName, Logo } from './icons.tsx'
import { agedClass } from './states.tsx'

export function Rail() {
  const services = useServiceCount()
  const needs = useNeeds().total
  return (
    <nav class="rail" aria-label={text.nav.label}>
      <a class="brand" href={pages.fleet()} aria-label={text.product}>
        <Logo />
        <span>{text.product}</span>
      </a>
      <Item name="fleet" href={pages.fleet()} label={text.nav.fleet} />
      <Item name="clusters" href={pages.clusters()} label={text.nav.clusters} n={numbers.value?.total} />
      <Item name="services" href={pages.services()} label={text.nav.services} n={services} />
      <Item name="repositories" href={pages.repositories()} label={text.nav.repositories} />
      <Item name="needs" href={pages.needs()} label={text.nav.needs} n={needs === 0 ? undefined : needs} urgent />
      <Item name="query" href={pages.query()} label={text.nav.query} />
      <hr />
      <Item name="activity" href={pages.activity()} label={text.nav.activity} />
      <Item name="notifications" href={pages.notifications()} label={text.nav.notifications} />
      <Item name="access" href={pages.access()} label={text.nav.access} />
      <Item name="join" href={pages.join()} label={text.nav.join} />
      <Item name="settings" href={pages.settings()} label={text.nav.settings} />
      <Foot />
    </nav>
  )
}

interface ItemProps {
  name: IconName
  href: string
  label: string
  n?: number | undefined
  urgent?: boolean
}

function Item({ name, href, label, n, urgent = false }: ItemProps) {
  const { path } = useLocation()
  const here = path.replace(/\/$/, '')
  const isHere = href === ROOT ? `${here}/` === ROOT : here === href || here.startsWith(`${href}/`)
  return (
    <a href={href} {...(isHere ? { 'aria-current': 'page' } : {})} title={label}>
      <Icon name={name} />
      <span>{label}</span>
      {n !== undefined && <span class={`${urgent ? 'n badly' : 'n'} ${agedClass()}`}>{number(n)}</span>}
    </a>
  )
}

function Foot() {
  const { state } = connection.value
  const now = session.value
  return (
    <div class="foot">
      {now.state === 'in' && (
        <a class="person" href={pages.access()} title={now.person.email ?? now.person.name}>
          <span class="clip">{now.person.name}</span>
          <small class="clip">{now.person.provider === null ? text.rail.token : text.rail.provider(now.person.provider)}</small>
        </a>
      )}
      <span class={`live is-${state}`}>
        <i />
        <span>{state === 'live' ? text.live.live : text.live.connecting}</span>
      </span>
      <button type="button" class="quiet" onClick={() => void signOut()}>
        {text.settings.signOut}
      </button>
    </div>
  )
}
