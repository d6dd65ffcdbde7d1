import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { renderMermaidSVG } from 'beautiful-mermaid'
import { type DefaultTheme, defineConfig } from 'vitepress'

const PAGES = fileURLToPath(new URL('../pages', import.meta.url))
const { description, repository } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
)

/** The parts of the site in the order in which a new reader wants them; within a part, the pages that are named come first. */
const PARTS: Readonly<Record<string, { folder: string; first: readonly string[] }>> = {
  Start: { folder: 'start', first: [] },
  Guides: { folder: 'guides', first: ['handlers.md', 'operations.md', 'keys.md', 'frameworks.md'] },
  Reference: { folder: 'reference', first: ['http.md', 'options.md', 'errors.md', 'problems.md'] },
  Explanation: { folder: 'explanation', first: ['guarantees.md', 'architecture.md'] },
}

export default defineConfig({
  title: 'onlyonce',
  description,
  srcDir: PAGES,
  outDir: fileURLToPath(new URL('../dist', import.meta.url)),
  cleanUrls: true,
  // A link to a page that is not there ends the build; test/docs.test.ts looks at headings too.
  ignoreDeadLinks: false,
  rewrites: { 'reference/api/README.md': 'reference/api/index.md' },
  markdown: {
    // Highlighted as no language; known, so that no warning hides another.
    languageAlias: { promql: 'txt' },
    config: (md) => {
      const fence = md.renderer.rules.fence!
      md.renderer.rules.fence = (tokens, index, ...rest) => {
        const { info, content } = tokens[index]!
        if (info.trim() !== 'mermaid') return fence(tokens, index, ...rest)
        return `<div class="diagram">${drawn(content)}</div>`
      }
    },
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    socialLinks: [{ icon: 'github', link: repository.url.replace(/^git\+|\.git$/g, '') }],
    nav: Object.entries(PARTS).map(([text, { folder }]) => ({
      text,
      link: pagesOf(folder)[0]!.link!,
      activeMatch: `/${folder}/`,
    })),
    sidebar: Object.entries(PARTS).map(([text, { folder }]) => ({
      text,
      items: pagesOf(folder),
      collapsed: false,
    })),
  },
})

/** In the colours of the theme, light and dark. */
function drawn(text: string): string {
  return renderMermaidSVG(text, {
    bg: 'var(--vp-c-bg)',
    fg: 'var(--vp-c-text-1)',
    line: 'var(--vp-c-text-3)',
    muted: 'var(--vp-c-text-2)',
    transparent: true,
  })
}

/** The pages of a folder, and the pages of its folders behind them. */
function pagesOf(folder: string): DefaultTheme.SidebarItem[] {
  const entries = readdirSync(`${PAGES}/${folder}`, { withFileTypes: true })
  const first = Object.values(PARTS).find((part) => part.folder === folder)?.first ?? []
  const place = (name: string) => (first.includes(name) ? first.indexOf(name) : first.length)
  const pages = entries.filter((entry) => entry.isFile() && entry.name.endsWith('.md'))
  const folders = entries.filter((entry) => entry.isDirectory())
  return [
    ...pages
      .map(({ name }) => name)
      .sort((a, b) => place(a) - place(b) || a.localeCompare(b))
      .map((name) => ({
        text: titleOf(`${folder}/${name}`),
        link: `/${folder}/${name.replace(/\.md$/, '').replace(/^README$/, '')}`,
      })),
    ...folders.map(({ name }) => ({
      text: named(name),
      collapsed: true,
      items: pagesOf(`${folder}/${name}`),
    })),
  ]
}

function titleOf(path: string): string {
  return /^# (.+)$/m.exec(readFileSync(`${PAGES}/${path}`, 'utf8'))?.[1]?.replaceAll('`', '') ?? path
}

function named(folder: string): string {
  return folder === 'api' ? 'API' : folder[0]!.toUpperCase() + folder.slice(1)
}
