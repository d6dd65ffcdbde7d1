/** Pages that a browser opens: what they may load, and whether they are there at all. */
import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/setup/database.ts'
import { openTestService } from './service.ts'

const database = await freshDatabase()
const open = await openTestService({ database })
const closed = await openTestService({ database, config: { docs: false } })

describe('/docs', () => {
  it('loads nothing but what comes from here, and stands in no frame', async () => {
    const page = await open.ask('/docs/')
    expect(page.status).toBe(200)
    const linked = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link]) => link!)
    expect(linked.length).toBeGreaterThan(3)
    const inline = page.text.match(/<script(?![^>]*src=)[^>]*>\s*\S/g)
    expect(inline).toBeNull()
    for (const path of ['/docs/', ...linked.map((link) => new URL(link, `${open.url}/docs/`).pathname)]) {
      const answer = await open.ask(path)
      expect([path, answer.status]).toEqual([path, 200])
      const policy = answer.headers.get('content-security-policy') ?? ''
      expect(policy, path).toContain("default-src 'none'")
      expect(policy, path).toContain("script-src 'self';")
      expect(policy, path).toContain("frame-ancestors 'none'")
      expect(policy, path).not.toMatch(/https?:|\*|unsafe-eval/)
    }
  })

  it('is not there where it was not asked for; the document is', async () => {
    for (const path of ['/docs', '/docs/', '/docs/json', '/docs/static/index.html']) {
      expect([path, (await closed.ask(path)).status]).toEqual([path, 404])
    }
    expect((await closed.ask('/openapi.json')).status).toBe(200)
  })
})
