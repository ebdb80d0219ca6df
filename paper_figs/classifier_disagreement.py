"""Where the paper's classifier and ours differ along beta, in both published scans."""

from script import Script

from statmech_attn import plotting


def main(arguments=None):
    script = Script(__file__, __doc__, arguments)
    for part in ("full", "zoom"):
        scan = script.study(f"analysis/bifurcation_{part}.toml")
        picture = plotting.figure(scan, "classifiers")
        script.save(picture, f"classifier_disagreement_{part}")


if __name__ == "__main__":
    main()
