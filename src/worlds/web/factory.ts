import { z } from 'zod'
import { environmentFactory } from '../../engine/environments/factory.ts'
import { miniwob } from './miniwob.ts'
import { webShop } from './sites/shop.ts'
import { webTracker } from './sites/tracker.ts'

const options = z.strictObject({
  variant: z.enum(['shop', 'tracker', 'miniwob'], {
    error: 'which web: web:shop, web:tracker or web:miniwob,root=DIR',
  }),
  /** Of MiniWoB++: the folder `html` of its package, and its pages, joined by +. */
  root: z.string().min(1).optional(),
  pages: z
    .string()
    .min(1)
    .transform(text => text.split('+'))
    .optional(),
  browser: z.string().min(1).optional(),
  screenshots: z.coerce.number().int().min(0).max(50).optional(),
  characters: z.coerce.number().int().min(500).max(200_000).optional(),
  seconds: z.coerce.number().positive().max(60).optional(),
})

/** `web`, opened by name: `web:shop`, `web:tracker`, `web:miniwob,root=DIR,pages=click-button+login-user`. */
export const webFactory = environmentFactory({
  about:
    'Web pages in a browser: a shop, an issue tracker, or MiniWoB++; each makes its own tasks.',
  options,
  open({ variant, root, pages, ...rest }) {
    if (variant === 'miniwob') {
      if (root === undefined)
        throw new TypeError(
          'web:miniwob needs root=DIR, the folder html of the Python package miniwob',
        )
      return miniwob({ root, pages, ...rest })
    }
    if (root !== undefined || pages !== undefined)
      throw new TypeError(`root and pages are options of web:miniwob, not of web:${variant}`)
    return variant === 'shop' ? webShop(rest) : webTracker(rest)
  },
})
