import { useEffect, useState } from 'preact/hooks'

type Theme = 'light' | 'dark'

const key = 'espalier-theme'

function preferred(): Theme {
  try {
    const kept = localStorage.getItem(key)
    if (kept === 'light' || kept === 'dark') return kept
  } catch {
    // Pages opened from a file may have no storage.
  }
  return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'
}

/** Changes between light and dark; what the system prefers counts until somebody chooses. */
export function ThemeButton() {
  const [theme, setTheme] = useState<Theme>(preferred)
  useEffect(() => {
    document.documentElement.dataset.theme = theme
    dispatchEvent(new Event('themechange'))
  }, [theme])
  const other = theme === 'dark' ? 'light' : 'dark'
  const change = (): void => {
    setTheme(other)
    try {
      localStorage.setItem(key, other)
    } catch {
      // Without storage, the choice lasts as long as the page.
    }
  }
  return (
    <button
      type="button"
      class="plain theme"
      onClick={change}
      aria-label={`Change to the ${other} theme`}
    >
      <svg width="18" height="18" viewBox="0 0 18 18" aria-hidden="true">
        <circle cx="9" cy="9" r="6.2" fill="none" stroke="currentColor" stroke-width="1.5" />
        <path d="M9 2.8a6.2 6.2 0 0 1 0 12.4z" fill="currentColor" />
      </svg>
    </button>
  )
}

/** The value of a colour in the current theme. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()
}

/** Whether there is room for what a telephone shows folded; the width is the one of the style sheet. */
export function isWide(): boolean {
  return matchMedia('(min-width: 901px)').matches
}
