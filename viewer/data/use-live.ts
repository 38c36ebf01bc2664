import { useEffect, useState } from 'preact/hooks'
import type { News } from './source.ts'
import { useSource } from './use-data.ts'

/** How often a growing run is asked about at most, in milliseconds. */
const pause = 1500

/** Follows a run while it is shown; the version rises when it has grown or stands otherwise. */
export function useLive(
  name: string | undefined,
  status: string | undefined,
): { readonly version: number; readonly isLive: boolean } {
  const source = useSource()
  const [version, setVersion] = useState(0)
  const [now, setNow] = useState(status)
  useEffect(() => {
    setNow(status)
    if (name === undefined || status === undefined) return
    let newest: News | undefined
    let shown: News | undefined
    const stop = source.watch(name, news => {
      newest = news
      // The data loaded with the page already has this version.
      shown ??= news
      setNow(news.status)
    })
    const timer = setInterval(() => {
      // The program that serves the page tells what is new only.
      if (newest === shown) return
      shown = newest
      setVersion(count => count + 1)
    }, pause)
    return () => {
      stop()
      clearInterval(timer)
    }
  }, [source, name, status])
  return { version, isLive: now === 'running' && !source.isFile }
}
