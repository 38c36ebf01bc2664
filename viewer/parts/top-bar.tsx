import type { RunEntry } from '../../src/doors/view/answers.ts'
import { goTo, hrefTo, type Route } from '../data/route.ts'
import { ThemeButton } from './theme.tsx'

interface TopBarProps {
  readonly route: Route
  readonly runs: readonly RunEntry[]
  readonly isLive: boolean
}

/** The current run, and links to its views. */
export function TopBar({ route, runs, isLive }: TopBarProps) {
  const [first, name, page] = route.path
  const run = first === 'run' ? name : undefined
  return (
    <header class="bar">
      <a class="mark" href={hrefTo([])} aria-label="Espalier, all runs">
        <Mark />
        <span>Espalier</span>
      </a>
      {run !== undefined && <RunPicker run={run} runs={runs} />}
      {run !== undefined && (
        <nav aria-label="Views of the run">
          <Tab href={hrefTo(['run', run])} isHere={page === undefined} text="Run" />
          <Tab href={hrefTo(['run', run, 'groups'])} isHere={page !== undefined} text="Groups" />
          <Tab href={hrefTo(['compare'], { before: run })} isHere={false} text="Compare" />
        </nav>
      )}
      {first === 'compare' && (
        <nav aria-label="Views">
          <Tab href={hrefTo(['compare'], route.params)} isHere text="Compare" />
        </nav>
      )}
      <span class="grow" />
      {isLive && (
        <span class="live" role="status">
          <i aria-hidden="true" />
          live
        </span>
      )}
      <ThemeButton />
    </header>
  )
}

function Tab({ href, isHere, text }: { href: string; isHere: boolean; text: string }) {
  return (
    <a href={href} aria-current={isHere ? 'page' : undefined}>
      {text}
    </a>
  )
}

function RunPicker({ run, runs }: { run: string; runs: readonly RunEntry[] }) {
  if (runs.length < 2)
    return (
      <a class="here" href={hrefTo(['run', run])}>
        {run}
      </a>
    )
  return (
    <label class="picker">
      <span class="hidden">Run</span>
      <select value={run} onChange={event => goTo(hrefTo(['run', event.currentTarget.value]))}>
        {runs.map(({ name }) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  )
}

/** A trained tree: a trunk and level branches. */
function Mark() {
  return (
    <svg
      width="22"
      height="22"
      viewBox="0 0 22 22"
      fill="none"
      stroke="currentColor"
      stroke-width="1.6"
      stroke-linecap="round"
      aria-hidden="true"
    >
      <path d="M11 20.5V2.5" />
      <path d="M11 16.5H5.5a2 2 0 0 1-2-2V12M11 16.5h5.5a2 2 0 0 0 2-2V12" />
      <path d="M11 9.5H7.5a2 2 0 0 1-2-2V5M11 9.5h3.5a2 2 0 0 0 2-2V5" />
    </svg>
  )
}
