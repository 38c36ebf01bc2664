import type { Page } from 'playwright-core'

/** A tab, and what of its page is shown. */
export interface Tab {
  readonly page: Page
  title: string
  /** Which part of a long page is shown, from 0. */
  part: number
}

/** A tab of a page that was just opened; another address is read from its beginning. */
export function makeTab(page: Page): Tab {
  const tab: Tab = { page, title: '', part: 0 }
  page.on('framenavigated', frame => {
    if (frame === page.mainFrame()) tab.part = 0
  })
  return tab
}

/** The part of the page's tree that is shown, and how to see the rest. */
export function windowOf(tab: Tab, tree: string, characters: number): string {
  const parts = partsOf(plain(tree), characters)
  tab.part = Math.min(tab.part, parts.length - 1)
  const shown = parts[tab.part] ?? ''
  if (parts.length === 1) return shown
  return `${shown}\n(Part ${tab.part + 1} of ${parts.length} of this page; scroll shows the others.)`
}

/** Whole lines, at most so many characters in a part; a line that is longer is cut. */
function partsOf(tree: string, characters: number): readonly string[] {
  const parts: string[] = []
  let part = ''
  for (const line of tree.split('\n')) {
    const short = line.length > characters ? `${line.slice(0, characters - 1)}…` : line
    if (part !== '' && part.length + short.length + 1 > characters) {
      parts.push(part)
      part = ''
    }
    part += part === '' ? short : `\n${short}`
  }
  return [...parts, part]
}

/** Without what costs tokens and tells a reader nothing: addresses, and that links can be clicked. */
function plain(tree: string): string {
  const lines = tree.split('\n').filter(line => !/^ *- \/url: /.test(line))
  return lines
    .map((line, index) => {
      const short = line.replace(clickable, '$1').replace(' [active]', '')
      const hasMore = depthOf(lines[index + 1] ?? '') > depthOf(line)
      return hasMore || !short.endsWith(']:') ? short : short.slice(0, -1)
    })
    .join('\n')
}

const clickable = /^( *- (?:link|button|option|tab|menuitem)\b.*) \[cursor=pointer\]/

function depthOf(line: string): number {
  return line.length - line.trimStart().length
}
