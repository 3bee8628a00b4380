"""`recordio view`: packs in a browser; needs starlette, uvicorn and Jinja2, the extra ``view``.

From a request to an answer: `guard` lets it in, `server` gives it to a page of `browsing`,
`reports`, `statistics` or `training`; a page asks a `ShownPack` for records, which finds them
through `locations`; `pictures` decodes what is shown, and `site` holds what pages share and fills
in their templates.
"""
